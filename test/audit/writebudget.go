package audit

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The writes that a job may cost.
const (
	budgetPlain  = 5 // create the unit, dequeue, release, end, one event
	budgetRan    = 6 // it ran so long that Running was written
	budgetWaited = 8 // it waited: the reason, and an event for it
	budgetShown  = 2 // the condition Queuing, on and off
)

// Above these a job has the larger budget: a little below the programs' own
// thresholds of 1 s and 2 s, for the log's times are those of the answers.
const (
	surelyNotWaited = 800 * time.Millisecond
	surelyNotLong   = 1500 * time.Millisecond
	causePause      = 30 * time.Second
	renewal         = 30 * time.Minute // an event is renewed before it expires
)

// JobWrites is what one job cost the API server, by the two programs.
type JobWrites struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`

	OnJob    int `json:"onJob"`
	OnUnit   int `json:"onUnit"`
	OnEvents int `json:"onEvents"`
	// Failed writes, as conflicts, are not among those above.
	Failed int `json:"failed"`
	// By verb, resource and purpose.
	By map[string]int `json:"by"`

	Waited time.Duration `json:"waited"`
	Ran    time.Duration `json:"ran"`
	Budget int           `json:"budget"`
	// Unjudged tells why the budget does not bind, if it does not.
	Unjudged string `json:"unjudged,omitempty"`
}

// Total of the writes that were carried out.
func (j JobWrites) Total() int { return j.OnJob + j.OnUnit + j.OnEvents }

// ObjectWrites counts the writes on a queue or tree.
type ObjectWrites struct {
	Object string `json:"object"`
	Status int    `json:"status"`
	Others int    `json:"others"`
	Failed int    `json:"failed"`

	last time.Time
}

// WriteTable is what the two programs wrote.
type WriteTable struct {
	Jobs     []JobWrites    `json:"jobs"`
	Statuses []ObjectWrites `json:"statuses"`
	// Others, on objects of no job, by verb and resource.
	Others map[string]int `json:"others,omitempty"`
}

// Writes counts what the two programs wrote.
func (l *Log) Writes(options Options) (WriteTable, error) {
	o, err := options.complete()
	if err != nil {
		return WriteTable{}, err
	}
	b := newBook()
	w := l.replay(o, func(w *world, c *change) { b.see(w, c) })
	t := WriteTable{Others: b.others}
	for _, a := range b.order {
		if a.settle(w); a.Total()+a.Failed > 0 {
			t.Jobs = append(t.Jobs, a.JobWrites)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b.statuses)) {
		t.Statuses = append(t.Statuses, *b.statuses[key])
	}
	return t, nil
}

// settle works out what the job may have cost.
func (a *account) settle(w *world) {
	if a.job.created.IsZero() {
		a.unjudged = cmp.Or(a.unjudged, "older than the log")
	}
	waited := timeOr(a.quota, w.end).Sub(a.job.created.Time)
	if a.quota.IsZero() && !a.ended.IsZero() {
		waited = a.ended.Time.Sub(a.job.created.Time)
	}
	a.Waited = waited
	if !a.released.IsZero() {
		a.Ran = timeOr(a.ended, w.end).Sub(a.released.Time)
	}
	a.Unjudged = a.unjudged
	a.Budget = budgetPlain
	if a.Ran >= surelyNotLong {
		a.Budget = budgetRan
	}
	if waited >= surelyNotWaited {
		a.Budget = budgetWaited
		if a.job.row.queuing {
			a.Budget += budgetShown
		}
		causes := max(0, a.reasons-1)
		a.Budget += min(causes, int((waited+causePause-1)/causePause))
		a.Budget += int(waited / renewal)
	}
	a.Budget += min(a.afterwards, 1) + len(a.warnings)
	// A unit whose job is gone is deleted where the garbage collector is slow.
	a.Budget += min(a.swept, 1)
}

func timeOr(m Moment, otherwise time.Time) time.Time {
	if m.IsZero() {
		return otherwise
	}
	return m.Time
}

func itoa(n int) string { return strconv.Itoa(n) }

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

func (j JobWrites) purposes() string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(j.By)) {
		parts = append(parts, itoa(j.By[what])+" × "+what)
	}
	return strings.Join(parts, ", ")
}

// named is an object of which only the name is known.
type named string

func (n named) String() string { return string(n) }
