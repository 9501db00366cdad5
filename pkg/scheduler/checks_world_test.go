package scheduler_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// addCheck: an administrator creates an admission check or changes its timeout.
func (w *world) addCheck(name string, timeout time.Duration) {
	w.checks[name] = timeout
	w.core.Apply(w.now, scheduler.CheckChanged{Name: name, Timeout: timeout})
	w.check()
}

func (w *world) removeCheck(name string) {
	delete(w.checks, name)
	w.core.Apply(w.now, scheduler.CheckGone{Name: name})
	w.check()
}

// checksOf are the names of the checks of the unit's queue. For a unit without a queue, they are the checks that were
// asked.
func (w *world) checksOf(u *scheduler.Unit) (names []string) {
	if _, refusal := w.tree.Place(u.Namespace(), u.QuotaName); refusal == nil && !w.without {
		return w.queueOf(u).Checks.Names()
	}
	if u.Checking != nil {
		for _, s := range u.Checking.States {
			names = append(names, s.Name)
		}
	}
	return names
}

// missingCheck is a check of the unit's queue that does not exist, or "".
func (w *world) missingCheck(u *scheduler.Unit) string {
	for _, name := range w.queueOf(u).Checks.Names() {
		if _, exists := w.checks[name]; !exists {
			return name
		}
	}
	return ""
}

// decide: the controller of a check writes its verdict.
func (w *world) decide(key, check string, verdict scheduler.Verdict, message string) {
	w.write(key, func(u *scheduler.Unit) {
		if u.Checking == nil {
			return
		}
		changed := *u.Checking
		changed.States = slices.Clone(changed.States)
		for i := range changed.States {
			if s := &changed.States[i]; s.Name == check {
				if s.Verdict != verdict {
					s.Since = w.now.UnixMicro()
				}
				s.Verdict, s.Message = verdict, message
			}
		}
		u.Checking = &changed
	})
}

// reserve carries out a write that reserves quota for a unit.
func (w *world) reserve(u *scheduler.Unit, s *scheduler.Write) {
	w.t.Helper()
	last := int32(0)
	if u.Checking != nil {
		last = u.Checking.Reservations
	}
	if u.Phase != scheduler.Waiting || u.Inactive || s.Checks == "" || s.Reservation != last+1 {
		w.t.Fatalf("unit %s is reserved in phase %d, inactive %t, for checks %q, as number %d after %d", u.Key, u.Phase, u.Inactive, s.Checks, s.Reservation, last)
	}
	u.Phase, u.Evicted, u.Stopped = scheduler.Reserved, false, false
	granted(u, s.Grant.Count)
	u.Checking = &scheduler.Checking{Reservations: s.Reservation, Generation: 1}
	for _, name := range s.Checks.Names() {
		u.Checking.States = append(u.Checking.States, scheduler.CheckState{Name: name, Verdict: scheduler.Pending, Since: w.now.UnixMicro()})
	}
}

// forgetChecks removes the verdicts of a unit that gives its quota back.
func (w *world) forgetChecks(u *scheduler.Unit, s *scheduler.Write) {
	if u.Checking == nil {
		return
	}
	u.Checking = &scheduler.Checking{Reservations: u.Checking.Reservations, Generation: 1}
	if s.Rejected {
		u.Held = &quota.Refusal{Reason: wellknown.ReasonAdmissionCheckRejected, Sentence: s.Message}
	}
}

// verdicts counts the verdicts of the queue's checks on a unit. For a Reserved unit, late ones count as retries.
func (w *world) verdicts(u *scheduler.Unit) (ready, pending, retry, rejected, unasked int) {
	for _, name := range w.checksOf(u) {
		i := -1
		if u.Checking != nil {
			i = slices.IndexFunc(u.Checking.States, func(s scheduler.CheckState) bool { return s.Name == name })
		}
		if i < 0 {
			unasked++
			continue
		}
		switch s := u.Checking.States[i]; s.Verdict {
		case scheduler.Ready:
			ready++
		case scheduler.Pending:
			if timeout := w.checks[name]; u.Phase == scheduler.Reserved && timeout > 0 && !w.now.Before(time.UnixMicro(s.Since).Add(timeout)) {
				retry++
			} else {
				pending++
			}
		case scheduler.Retry:
			retry++
		case scheduler.Rejected:
			rejected++
		}
	}
	return ready, pending, retry, rejected, unasked
}

// checkWriteOfChecks proves that a write about to be sent follows the checks of the unit.
func (w *world) checkWriteOfChecks(write scheduler.Write) {
	w.t.Helper()
	u := w.units[write.Key]
	if u == nil || u.Version != write.Version {
		return // the core does not know of a change yet, so the write will fail
	}
	_, pending, retry, rejected, unasked := w.verdicts(u)
	switch checks := w.checksOf(u); {
	case write.Kind == scheduler.Dequeue && u.Phase == scheduler.Waiting && len(checks) > 0,
		write.Kind == scheduler.Dequeue && u.Phase == scheduler.Reserved && pending+retry+rejected+unasked > 0:
		w.t.Fatalf("unit %s is released in phase %d although its checks %v are not ready: %+v", u.Key, u.Phase, checks, u.Checking)
	case write.Kind == scheduler.Reserve && write.Checks != scheduler.ChecksOf(checks), write.Kind == scheduler.Reserve && w.missingCheck(u) != "":
		w.t.Fatalf("unit %s is reserved for checks %q, want %v", u.Key, write.Checks, checks)
	case write.Kind == scheduler.Evict && write.Reason == wellknown.ReasonAdmissionCheckRetry && (retry == 0 || rejected > 0 || u.Phase == scheduler.Reserved),
		write.Kind == scheduler.Evict && write.Reason == wellknown.ReasonAdmissionCheckRejected && (rejected == 0 || u.Phase == scheduler.Reserved):
		w.t.Fatalf("unit %s is evicted for %s: %+v", u.Key, write.Reason, u.Checking)
	case write.Kind == scheduler.Requeue && !u.Stopped && !w.mustGiveBack(u) && w.off[u.Kind] == nil:
		w.t.Fatalf("unit %s gives its quota back for no reason: %+v", u.Key, u)
	case write.Kind == scheduler.Requeue && write.Rejected != (rejected > 0):
		w.t.Fatalf("unit %s is requeued as rejected %t: %+v", u.Key, write.Rejected, u.Checking)
	case write.Kind == scheduler.Requeue && retry > 0 && rejected == 0 && !write.Requeue.Until.After(w.now):
		w.t.Fatalf("unit %s is requeued at once after a check has failed", u.Key)
	}
}

// mustGiveBack reports whether a Reserved unit must not keep its quota.
func (w *world) mustGiveBack(u *scheduler.Unit) bool {
	_, _, retry, rejected, unasked := w.verdicts(u)
	_, refusal := w.tree.Place(u.Namespace(), u.QuotaName)
	return u.Phase == scheduler.Reserved &&
		(u.Held != nil || refusal != nil || w.queueOf(u).Stop != scheduler.NotStopped || w.missingCheck(u) != "" || retry+rejected+unasked > 0)
}

// expectChecksFollowed proves that in a world at rest the phase of a unit follows its checks.
func (w *world) expectChecksFollowed(t *rapid.T, u *scheduler.Unit) {
	if !holds(u) || u.Evicted || u.Stopped || u.Over {
		return
	}
	_, pending, retry, rejected, _ := w.verdicts(u)
	switch {
	case u.Phase == scheduler.Reserved && (w.mustGiveBack(u) || pending == 0):
		t.Fatalf("unit %s is still reserved, with checks %v: %+v", u.Key, w.checksOf(u), u.Checking)
	case u.Phase == scheduler.Reserved && u.Reason != wellknown.ReasonAdmissionCheckPending:
		t.Fatalf("unit %s waits for its checks and shows %q", u.Key, u.Reason)
	case u.Phase != scheduler.Reserved && w.missingCheck(u) == "" && retry+rejected > 0:
		t.Fatalf("unit %s holds quota although a check has failed: %+v", u.Key, u.Checking)
	}
}

func (w *world) drawChecks(t *rapid.T, checked bool) scheduler.Checks {
	if !checked {
		return ""
	}
	return scheduler.ChecksOf(rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "z"}), 0, 2).Draw(t, "checks"))
}

// checkActions adds the actions of administrators and of controllers of checks.
func (w *world) checkActions(actions map[string]func(*rapid.T), pick func(string) string) {
	names := rapid.SampledFrom([]string{"x", "y", "z"})
	w.addCheck("x", 0)
	w.addCheck("y", 0)
	actions["add or change a check"] = func(t *rapid.T) {
		w.addCheck(names.Draw(t, "check"), time.Duration(max(rapid.IntRange(-60, 60).Draw(t, "timeout"), 0))*time.Second)
	}
	actions["remove a check"] = func(t *rapid.T) { w.removeCheck(names.Draw(t, "check")) }
	decide := func(t *rapid.T, verdict *rapid.Generator[scheduler.Verdict]) {
		key := pick("unit")
		if c := w.units[key].Checking; c != nil && len(c.States) > 0 {
			check := rapid.SampledFrom(c.States).Draw(t, "check").Name
			w.decide(key, check, verdict.Draw(t, "verdict"), fmt.Sprint("message ", rapid.IntRange(0, 2).Draw(t, "message")))
		}
	}
	actions["decide a check"] = func(t *rapid.T) {
		decide(t, rapid.SampledFrom([]scheduler.Verdict{scheduler.Ready, scheduler.Pending, scheduler.Retry, scheduler.Rejected}))
	}
	actions["pass all checks"] = func(t *rapid.T) { // random lives get further than with single decisions
		key := pick("unit")
		if c := w.units[key].Checking; c != nil {
			for _, s := range c.States {
				w.decide(key, s.Name, scheduler.Ready, "")
			}
		}
	}
}
