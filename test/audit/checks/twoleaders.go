package checks

import (
	"time"

	"kube-queue.dev/kube-queue/test/audit/model"
)

// twoLeaders knows who holds the lease of each program, and that nobody else acts as
// it. Processes are distinguished by their credentials: two that share a token are one to
// it, and who holds a lease that has run out, or that was given up, binds nobody. Events
// do not count: they are reported what was done before, and each is one by its name.
type twoLeaders struct{ terms map[string]*term }

// term is for how long a process of a program, its user, has the lease.
type term struct {
	instance, holder string
	taken, renewed   model.Moment
	lasts            time.Duration
}

func newTwoLeaders() inspector { return &twoLeaders{terms: map[string]*term{}} }

func (l *twoLeaders) finish(*model.World, *findings) {}

func (l *twoLeaders) see(w *model.World, c *model.Change, f *findings) {
	if !w.Options.Program(c.Write) || !c.Write.OK() || c.Write.Instance == "" {
		return
	}
	held := l.terms[c.Write.User]
	if lease, is := c.Write.Body.(*model.LeaseFacts); is {
		l.terms[c.Write.User] = held.goesOn(c.Write, lease)
		return
	}
	if c.Write.Resource == "events" || held == nil || held.holder == "" || c.Write.Time.Sub(held.renewed.Time) > held.lasts {
		f.NotJudged++
		return
	}
	if f.Judged++; c.Write.Instance != held.instance {
		f.fail("two-leaders", c.Write.Moment(), named(c.Write.Resource+" "+c.Write.Namespace+"/"+c.Write.Name),
			"written by another process than %s, which has held the lease since %s",
			held.holder, held.taken.Time.UTC().Format("15:04:05.000"))
	}
}

// goesOn is the term after a write of the lease.
func (t *term) goesOn(w *model.Write, lease *model.LeaseFacts) *term {
	next := &term{instance: w.Instance, holder: lease.Holder, taken: w.Moment(), renewed: w.Moment(), lasts: lease.Lasts}
	if t != nil && t.instance == w.Instance && t.holder == lease.Holder {
		next.taken = t.taken
	}
	return next
}
