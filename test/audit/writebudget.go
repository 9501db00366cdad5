package audit

import "time"

// writeBudget holds the book against the budget.
type writeBudget struct{ *book }

func newWriteBudget() inspector { return writeBudget{newBook()} }

func (b writeBudget) see(w *world, c *change, _ *findings) { b.book.see(w, c) }

func (b writeBudget) finish(w *world, f *findings) {
	for _, a := range b.order {
		a.settle(w)
		switch {
		case a.Total() == 0:
		case a.Unjudged != "":
			f.NotJudged++
		default:
			f.Judged++
			if a.Total() > a.Budget {
				at := a.job.created
				f.fail("job-budget", at, a.job, "it cost %d writes where %d are allowed (waited %s, ran %s): %s", a.Total(), a.Budget,
					a.Waited.Round(time.Millisecond), a.Ran.Round(time.Millisecond), a.purposes())
			}
		}
	}
	for _, r := range b.rapid {
		f.fail("status-rate", r.at, named(r.object), "its status was written %s after the time before", r.after.Round(time.Millisecond))
	}
	for _, s := range b.statuses {
		f.Judged += s.Status
	}
}

// named is an object of which only the name is known.
type named string

func (n named) String() string { return string(n) }
