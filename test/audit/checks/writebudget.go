package checks

import (
	"time"

	"kube-queue.dev/kube-queue/test/audit/budget"
	"kube-queue.dev/kube-queue/test/audit/state"
)

// writeBudget checks the counted writes against the budget.
type writeBudget struct{ *budget.Book }

func newWriteBudget() inspector { return writeBudget{budget.NewBook()} }

func (b writeBudget) see(s *state.State, c *state.Change, _ *findings) { b.Book.See(s, c) }

func (b writeBudget) finish(s *state.State, f *findings) {
	for _, a := range b.Order {
		a.Settle(s)
		switch {
		case a.Total() == 0:
		case a.Unjudged != "":
			f.NotChecked++
		default:
			f.Checked++
			if a.Total() > a.Budget {
				at := a.Job.Created
				f.fail("job-budget", at, a.Job, "it took %d writes, but its budget is %d (waited %s, ran %s): %s", a.Total(), a.Budget,
					a.Waited.Round(time.Millisecond), a.Ran.Round(time.Millisecond), a.Purposes())
			}
		}
	}
	for _, r := range b.Rapid {
		f.fail("status-rate", r.At, named(r.Object), "its status was written only %s after the previous write", r.After.Round(time.Millisecond))
	}
	f.Checked += b.Statuses
}

// named is an object with only a known name.
type named string

func (n named) String() string { return string(n) }
