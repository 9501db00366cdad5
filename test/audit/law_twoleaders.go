package audit

import "time"

// term is the time for which a process holds the lease of a program.
type term struct {
	instance, holder string
	taken, renewed   Moment
	lasts            time.Duration
}

// twoLeaders tracks the lease holder of each program and checks that no other process writes as that program. It
// identifies processes by their credentials, so two processes with the same token look like one. An expired or
// released lease restricts no process. Events do not count: they report earlier decisions, and their names are
// unique.
func twoLeaders() law {
	terms := map[string]term{} // by user
	return law{
		name: "two-leaders", doc: "only the process that holds the lease writes as the program",
		see: func(_ *world, c *change, f *Check) {
			if !c.byProgram() || !c.ok() || c.instance == "" {
				return
			}
			held := terms[c.user]
			if lease, is := c.body.(*leaseFacts); is {
				next := term{instance: c.instance, holder: lease.holder, taken: c.Moment, renewed: c.Moment, lasts: lease.lasts}
				if held.instance == next.instance && held.holder == next.holder {
					next.taken = held.taken
				}
				terms[c.user] = next
				return
			}
			if c.resource == "events" || held.holder == "" || c.Time.Sub(held.renewed.Time) > held.lasts {
				f.NotChecked++
				return
			}
			if f.Checked++; c.instance != held.instance {
				f.fail("two-leaders", c.Moment, named(c.resource+" "+c.namespace+"/"+c.name),
					"it was written by a process other than %s, which has held the lease since %s",
					held.holder, held.taken.Time.UTC().Format("15:04:05.000"))
			}
		},
	}
}
