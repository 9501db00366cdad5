package audit

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The number of writes allowed for one job.
const (
	budgetPlain  = 5 // create the unit, dequeue, release, end, one event
	budgetRan    = 6 // it ran so long that Running was written
	budgetWaited = 8 // it waited: one write of the reason, and one event
	budgetShown  = 2 // the condition Queuing, set and cleared
)

// A job that waited or ran longer than this has the larger budget. The times are a little below the programs' own
// thresholds of 1 s and 2 s, because the log has the times of the responses.
const (
	surelyNotWaited = 800 * time.Millisecond
	surelyNotLong   = 1500 * time.Millisecond
	causePause      = 30 * time.Second
	comesAndGoes    = 1                // how often an earlier cause may return at once
	renewal         = 30 * time.Minute // an event is renewed before it expires
)

// nodesPending is the reason of events that show what an autoscaler reports.
const nodesPending = "ProvisioningPending"

// JobWrites counts the writes of the two programs for one job.
type JobWrites struct {
	Kind      string
	Namespace string
	Name      string
	UID       string

	OnJob    int
	OnUnit   int
	OnEvents int
	// Failed counts failed writes such as conflicts, which are not included above.
	Failed int
	// By counts writes by verb, resource and purpose.
	By map[string]int

	Waited time.Duration
	Ran    time.Duration
	Budget int
	// Unjudged is the reason why the budget does not apply, if any.
	Unjudged string
}

// Total returns the number of successful writes.
func (j JobWrites) Total() int { return j.OnJob + j.OnUnit + j.OnEvents }

// settle computes the budget of the account.
func (a *account) settle(s *world) {
	if a.job.created.IsZero() {
		a.Unjudged = cmp.Or(a.Unjudged, "older than the log")
	}
	until := timeOr(a.quota, s.end)
	if a.quota.IsZero() && !a.ended.IsZero() {
		until = a.ended.Time
	}
	waited := until.Sub(a.job.created.Time)
	a.Waited = waited
	if !a.released.IsZero() {
		a.Ran = timeOr(a.ended, s.end).Sub(a.released.Time)
	}
	a.Budget = budgetPlain
	if a.Ran >= surelyNotLong {
		a.Budget = budgetRan
	}
	if waited >= surelyNotWaited {
		a.Budget = budgetWaited
		if a.job.now.kind.ShowsQueuing {
			a.Budget += budgetShown
		}
		causes := max(0, a.reasons-1)
		paced := int((waited + causePause - 1) / causePause)
		// A cause that is no longer true is replaced at once, unless it comes and goes.
		a.Budget += min(causes, comesAndGoes+len(a.shown)+paced+s.decidersBetween(a.job.created.Time, until))
		a.Budget += a.asked // an event follows each
		a.Budget += int(waited / renewal)
	}
	a.Budget += a.more + min(a.nodes, a.checked) // each of these comes with a write of the check
}

func timeOr(m Moment, otherwise time.Time) time.Time {
	if m.IsZero() {
		return otherwise
	}
	return m.Time
}

// purposes lists the purposes of the writes with their counts.
func (j JobWrites) purposes() string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(j.By)) {
		parts = append(parts, strconv.Itoa(j.By[what])+" × "+what)
	}
	return strings.Join(parts, ", ")
}
