package checks

import (
	"time"

	"kube-queue.dev/kube-queue/test/audit/facts"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// twoLeaders tracks the holder of the lease of each program and checks that no other process
// writes as that program. It identifies processes by their credentials, so two processes with
// the same token look like one. An expired or released lease restricts nobody. Events do not
// count: they report earlier decisions, and their names are unique.
type twoLeaders struct {
	terms map[string]*term
}

// term is the time for which a process holds the lease of a program.
type term struct {
	instance, holder string
	taken, renewed   facts.Moment
	lasts            time.Duration
}

func newTwoLeaders() inspector { return &twoLeaders{terms: map[string]*term{}} }

func (l *twoLeaders) see(_ *state.State, c *state.Change, f *findings) {
	if !c.Write.ByProgram() || !c.Write.OK() || c.Write.Instance == "" {
		return
	}
	held := l.terms[c.Write.User]
	if lease, is := c.Write.Body.(*facts.Lease); is {
		l.terms[c.Write.User] = held.goesOn(c.Write, lease)
		return
	}
	if c.Write.Resource == "events" || held == nil || held.holder == "" || c.Write.Time.Sub(held.renewed.Time) > held.lasts {
		f.NotChecked++
		return
	}
	if f.Checked++; c.Write.Instance != held.instance {
		f.fail("two-leaders", c.Write.Moment(), named(c.Write.Resource+" "+c.Write.Namespace+"/"+c.Write.Name),
			"it was written by a process other than %s, which has held the lease since %s",
			held.holder, held.taken.Time.UTC().Format("15:04:05.000"))
	}
}

// goesOn returns the term after a write of the lease.
func (t *term) goesOn(w *facts.Write, lease *facts.Lease) *term {
	next := &term{instance: w.Instance, holder: lease.Holder, taken: w.Moment(), renewed: w.Moment(), lasts: lease.Lasts}
	if t != nil && t.instance == w.Instance && t.holder == lease.Holder {
		next.taken = t.taken
	}
	return next
}
