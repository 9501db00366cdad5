package scheduler

import (
	"slices"
	"time"
	"unique"

	"kube-queue.dev/kube-queue/pkg/quota"
)

// report is how often a unit has reported a cause, and when it last did.
type report struct {
	cause unique.Handle[quota.Cause]
	at    instant
	count int32
}

// historyFor is how long a report is remembered. Two alternating causes are each reported every two ReasonIntervals,
// so this must be longer.
const historyFor = 3 * ReasonInterval

// show records the cause that the unit shows from now on.
func (e *explainer) show(u *unit, cause quota.Cause, now time.Time) {
	if before := u.shown.last(); before != (quota.Cause{}) && before != cause {
		if e.history[u] == nil {
			e.remember(u, u.shown.cause, u.shown.at)
		}
		e.remember(u, one(cause), instantOf(now))
	}
	u.shown.cause, u.shown.at = one(cause), instantOf(now)
	if e.sweepAt == 0 {
		e.sweepAt = instantOf(now).plus(historyFor)
	}
	if instantOf(now) >= e.sweepAt {
		e.sweep(instantOf(now))
	}
}

// remember adds a report to the history of the unit.
func (e *explainer) remember(u *unit, cause unique.Handle[quota.Cause], at instant) {
	count := int32(1)
	all := slices.DeleteFunc(e.history[u], func(r report) bool {
		if r.cause == cause && at < r.at.plus(historyFor) {
			count += r.count
		}
		return r.cause == cause || at >= r.at.plus(historyFor)
	})
	e.history[u] = append(all, report{cause: cause, at: at, count: count})
}

// sweep forgets old reports.
func (e *explainer) sweep(now instant) {
	e.sweepAt = now.plus(historyFor)
	for u, reports := range e.history {
		if now >= reports[len(reports)-1].at.plus(historyFor) { // the last is the newest
			delete(e.history, u)
		}
	}
}

// reported returns how often the unit has recently reported the cause.
func (e *explainer) reported(u *unit, cause quota.Cause, now time.Time) int32 {
	for _, r := range e.history[u] {
		if r.cause == one(cause) && instantOf(now) < r.at.plus(historyFor) {
			return r.count
		}
	}
	return 0
}

// comesAndGoes reports whether the unit has reported this cause before and its current one more than once.
func (e *explainer) comesAndGoes(u *unit, cause quota.Cause, now time.Time) bool {
	return e.reported(u, cause, now) > 0 && e.reported(u, u.shown.last(), now) > 1
}
