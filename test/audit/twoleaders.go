package audit

import "time"

// twoLeaders knows who holds the lease of each program, and that nobody else acts as
// it. Processes are told apart by their credentials: two that share a token are one to
// it, and who holds a lease that has run out, or that was given up, binds nobody. Events
// do not count: they are told of what was done before, and each is one by its name.
type twoLeaders struct{ terms map[string]*term }

// term is for how long a process of a program, its user, has the lease.
type term struct {
	instance, holder string
	taken, renewed   Moment
	lasts            time.Duration
}

func newTwoLeaders() inspector { return &twoLeaders{terms: map[string]*term{}} }

func (l *twoLeaders) finish(*world, *findings) {}

func (l *twoLeaders) see(w *world, c *change, f *findings) {
	if !w.options.program(c.w) || !c.w.OK() || c.w.instance == "" {
		return
	}
	held := l.terms[c.w.User]
	if lease, is := c.w.body.(*leaseFacts); is {
		l.terms[c.w.User] = held.goesOn(c.w, lease)
		return
	}
	if c.w.Resource == "events" || held == nil || held.holder == "" || c.w.Time.Sub(held.renewed.Time) > held.lasts {
		f.NotJudged++
		return
	}
	if f.Judged++; c.w.instance != held.instance {
		f.fail("two-leaders", c.w.moment(), named(c.w.Resource+" "+c.w.Namespace+"/"+c.w.Name),
			"written by another process than %s, which has held the lease since %s",
			held.holder, held.taken.Time.UTC().Format("15:04:05.000"))
	}
}

// goesOn is the term after a write of the lease.
func (t *term) goesOn(w *Write, lease *leaseFacts) *term {
	next := &term{instance: w.instance, holder: lease.holder, taken: w.moment(), renewed: w.moment(), lasts: lease.lasts}
	if t != nil && t.instance == w.instance && t.holder == lease.holder {
		next.taken = t.taken
	}
	return next
}
