package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// A queue can have admission checks. A unit that fits is then Reserved first: it is charged and its checks run. It is
// admitted when all checks are ready. A check can fail before or after the admission.
//
// A Reserved unit runs nothing. If a check fails, or anything else keeps the unit out of its queue, one write frees
// its quota. Only other units can evict it. After its admission, a failed check evicts it like any other reason.

// CheckInterval is the shortest time between two explanations of why a Reserved unit waits.
const CheckInterval = 5 * time.Second

// Checks are the names of admission checks, in order and separated by commas. Unlike a slice, they can be
// compared.
type Checks string

// ChecksOf returns the checks with the names, each once.
func ChecksOf(names []string) Checks {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	return Checks(strings.Join(slices.Compact(sorted), ","))
}

// Names returns the names in order.
func (c Checks) Names() []string {
	if c == "" {
		return nil
	}
	return strings.Split(string(c), ",")
}

// Verdict is what an admission check has decided about a unit. If there are several, the highest one counts.
type Verdict int8

// The verdicts.
const (
	Ready Verdict = iota
	Pending
	Retry
	Rejected
)

// CheckState is the verdict of one admission check about a unit.
type CheckState struct {
	Name    string
	Verdict Verdict
	// Message explains the verdict.
	Message string
	// Since is when the verdict last changed, in microseconds since 1970; 0 if unknown.
	Since int64
}

// Checking is what the admission checks of a unit have decided.
type Checking struct {
	// States are in no particular order.
	States []CheckState
	// Reservations is how often the unit reserved quota for its checks.
	Reservations int32
	// Generation is the generation of the spec of the unit.
	Generation int64
}

// CheckChanged means that an admission check exists or has changed.
type CheckChanged struct {
	Name string
	// Timeout is how long a unit waits for the check; 0 means no limit.
	Timeout time.Duration
}

// CheckGone means that an admission check was deleted.
type CheckGone struct{ Name string }

func (e CheckChanged) apply(s *Scheduler, now time.Time) {
	if timeout, known := s.checks[e.Name]; known && timeout == e.Timeout {
		return
	}
	s.checks[e.Name] = e.Timeout
	s.checkHasChanged(e.Name, now)
}

func (e CheckGone) apply(s *Scheduler, now time.Time) {
	delete(s.checks, e.Name)
	s.checkHasChanged(e.Name, now)
}

// checkHasChanged updates the queues that use the check, and their units.
func (s *Scheduler) checkHasChanged(name string, now time.Time) {
	for _, q := range slices.Clone(s.order) {
		if slices.Contains(q.checks, name) {
			s.findMissingCheck(q)
			s.settleUnitsOf(q, "", now)
		}
	}
}

// setChecks updates the checks of a queue from its settings.
func (s *Scheduler) setChecks(q *queueState) {
	q.checks = q.set.Checks.Names()
	s.findMissingCheck(q)
}

func (s *Scheduler) findMissingCheck(q *queueState) {
	q.missingCheck = ""
	for _, name := range q.checks {
		if _, exists := s.checks[name]; !exists {
			q.missingCheck = name
			return
		}
	}
}

// admits reports whether units of the queue may be admitted.
func (q *queueState) admits() bool { return q.set.Stop == NotStopped && q.missingCheck == "" }

// admission returns the write with which the queue admits a waiting unit that fits.
func (q *queueState) admission() Kind {
	if len(q.checks) > 0 {
		return Reserve
	}
	return Dequeue
}

// stateOf returns what a check has decided about the unit; nil if it was not asked.
func (u *unit) stateOf(check string) *CheckState {
	if u.Checking == nil {
		return nil
	}
	i := slices.IndexFunc(u.Checking.States, func(c CheckState) bool { return c.Name == check })
	if i < 0 {
		return nil
	}
	return &u.Checking.States[i]
}

// reservations returns how often the unit reserved quota for its checks.
func (u *unit) reservations() int32 {
	if u.Checking == nil {
		return 0
	}
	return u.Checking.Reservations
}

// checkState returns the state of the check that decides about the unit: the queue's first check with the highest
// verdict. A check that was not asked is Pending. A Reserved unit whose check is late is tried again. An admitted unit
// waits for no check. If the unit has no queue, all checks that were asked decide.
func (s *Scheduler) checkState(u *unit, now time.Time) (decisive CheckState) {
	for _, name := range u.checks() {
		state := CheckState{Name: name, Verdict: Pending}
		if known := u.stateOf(name); known != nil {
			state = *known
		}
		switch {
		case state.Verdict == Pending && u.Phase != Reserved:
			continue
		case state.Verdict == Pending && s.isLate(&state, now):
			state.Verdict = Retry
			state.Message = strings.TrimSuffix(fmt.Sprintf("it was not decided within %v; %s", s.checks[name], state.Message), "; ")
		}
		if state.Verdict > decisive.Verdict {
			decisive = state
		}
	}
	return decisive
}

// checks returns the names of the checks that decide about the unit.
func (u *unit) checks() (names []string) {
	switch {
	case u.queue != nil:
		return u.queue.checks
	case u.Checking != nil:
		for i := range u.Checking.States {
			names = append(names, u.Checking.States[i].Name)
		}
	}
	return names
}

// isLate reports whether a check that is Pending has not been decided in time.
func (s *Scheduler) isLate(state *CheckState, now time.Time) bool {
	timeout := s.checks[state.Name]
	return timeout > 0 && state.Since > 0 && !now.Before(time.UnixMicro(state.Since).Add(timeout))
}

// watchChecks sets the time at which the first check of a Reserved unit is late.
func (s *Scheduler) watchChecks(u *unit, now time.Time) {
	var first instant
	if u.Phase == Reserved {
		for _, name := range u.checks() {
			timeout := s.checks[name]
			if state := u.stateOf(name); state != nil && state.Verdict == Pending && timeout > 0 && state.Since > 0 && !s.isLate(state, now) {
				first = earliest(first, instantOf(time.UnixMicro(state.Since).Add(timeout)))
			}
		}
	}
	if first == 0 {
		delete(s.timers.checks, u)
	} else {
		s.timers.checks[u] = first
	}
}

// mayGiveBack reports whether a Reserved unit must free its quota. Nothing has to stop first.
func (s *Scheduler) mayGiveBack(u *unit, now time.Time) bool {
	if u.Phase != Reserved || u.Evicted || u.Stopped || u.Over || u.unadmitted || s.backend == nil {
		return false
	}
	return u.keptOut() != nil || s.checkState(u, now).Verdict >= Retry || u.isUnasked()
}

// isUnasked reports whether a check was added to the queue after the unit became Reserved.
func (u *unit) isUnasked() bool {
	return u.queue != nil && slices.ContainsFunc(u.queue.checks, func(name string) bool { return u.stateOf(name) == nil })
}

// mayRelease reports whether all checks of a Reserved unit are ready and nothing else prevents its admission.
func (s *Scheduler) mayRelease(u *unit, now time.Time) bool {
	return u.Phase == Reserved && !u.Evicted && !u.Stopped && !u.Over && !u.unadmitted && u.leaving == nil && u.queue != nil &&
		u.keptOut() == nil && s.checkState(u, now).Verdict == Ready
}

// failedCheck returns why a check evicts the unit; nil if none does.
func (s *Scheduler) failedCheck(u *unit, now time.Time) *quota.Refusal {
	switch state := s.checkState(u, now); state.Verdict {
	case Retry:
		return &quota.Refusal{Reason: wellknown.ReasonAdmissionCheckRetry,
			Sentence: state.sentence("failed", "the job is stopped and queued again")}
	case Rejected:
		return &quota.Refusal{Reason: wellknown.ReasonAdmissionCheckRejected,
			Sentence: state.sentence("rejected the job", "the job is stopped, and is queued again when it changes")}
	default:
		return nil
	}
}

// sentence returns a message about the check: what it did, its own message and what follows.
func (c *CheckState) sentence(did, then string) string {
	sentence := fmt.Sprintf("admission check %s %s", c.Name, did)
	if c.Message != "" {
		sentence += ": " + c.Message
	}
	if then != "" {
		sentence += "; " + then
	}
	return sentence
}

// pendingCheck explains why a Reserved unit waits; nil if all its checks are decided.
func (u *unit) pendingCheck() *quota.Refusal {
	if u.queue == nil || u.Evicted || u.Stopped || u.leaving != nil {
		return nil
	}
	var undecided []string
	for _, name := range u.queue.checks {
		state := u.stateOf(name)
		if state == nil || state.Verdict != Pending {
			continue
		}
		if undecided == nil && state.Message != "" {
			return &quota.Refusal{Reason: wellknown.ReasonAdmissionCheckPending, Detail: state.Name + ": " + state.Message,
				Sentence: state.sentence("is not decided", "")}
		}
		undecided = append(undecided, name)
	}
	return undecidedChecks(undecided)
}

// undecidedChecks explains that a unit waits for checks that have not reported anything; nil if there are none.
func undecidedChecks(names []string) *quota.Refusal {
	if len(names) == 0 {
		return nil
	}
	return &quota.Refusal{Reason: wellknown.ReasonAdmissionCheckPending, Detail: strings.Join(names, ","),
		Sentence: fmt.Sprintf("the quota is reserved; the job is released when these admission checks are ready, each decided by the controller that its AdmissionCheck names: %s", strings.Join(names, ", "))}
}

// composeReserve completes the write that charges a unit and starts its checks.
func (s *Scheduler) composeReserve(u *unit, w *Write, now time.Time) {
	w.Checks = u.queue.set.Checks
	w.Reservation, w.Grant = u.reservations()+1, u.granted()
	why := undecidedChecks(u.queue.checks)
	w.Reason, w.Message = why.Reason, why.Message()
	s.explainer.show(u, why.Cause(), now)
}

// reserved applies what composeReserve has written.
func (u *unit) reserved(w *Write, at time.Time) {
	checking := &Checking{Reservations: w.Reservation}
	if u.Checking != nil {
		checking.Generation = u.Checking.Generation
	}
	for _, name := range w.Checks.Names() {
		checking.States = append(checking.States, CheckState{Name: name, Verdict: Pending, Since: at.UnixMicro()})
	}
	u.Checking = checking
}

// forgetChecks forgets the verdicts of a unit that has freed its quota.
func (u *unit) forgetChecks(w *Write) {
	if u.Checking == nil {
		return
	}
	u.Checking = &Checking{Reservations: u.Checking.Reservations, Generation: u.Checking.Generation}
	if w.Rejected {
		u.Held = &quota.Refusal{Reason: wellknown.ReasonAdmissionCheckRejected, Sentence: w.Message}
	}
}
