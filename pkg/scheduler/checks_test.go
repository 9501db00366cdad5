package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/backoff"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// checking returns a world in which the queue of namespace a, with 4 cpu, has the checks.
func checking(t *testing.T, checks ...string) *world {
	t.Helper()
	w := newWorld(t, checkOptions(), leaf("root", cpu("4"), "a"))
	for _, name := range checks {
		w.addCheck(name, 0)
	}
	w.configure(scheduler.QueueChanged{Queue: "root", Checks: scheduler.ChecksOf(checks)})
	w.list()
	return w
}

func checkOptions() scheduler.Options {
	return scheduler.Options{Policy: queue.RoundRobin, Requeues: backoff.Policy{Free: 3, Initial: 10 * time.Second, Max: 5 * time.Minute, Quiet: 10 * time.Minute},
		CheckRetries: backoff.Policy{Initial: 10 * time.Second, Max: 15 * time.Minute, Quiet: 30 * time.Minute}}
}

func (w *world) expectPhase(key string, phase scheduler.Phase, reason wellknown.Reason) {
	w.t.Helper()
	if u := w.units[key]; u.Phase != phase || u.Reason != reason {
		w.t.Fatalf("unit %s has phase %d and reason %q, want %d and %q", key, u.Phase, u.Reason, phase, reason)
	}
}

// lastMessage returns the message that was last written to the unit.
func (w *world) lastMessage(key string) string {
	for _, s := range slices.Backward(w.landed) {
		if s.Key == key && s.Message != "" {
			return s.Message
		}
	}
	return ""
}

// viewedMessage returns why the unit waits according to a View.
func (w *world) viewedMessage(key string) string {
	view := w.core.View(w.now, w.names)
	i := slices.IndexFunc(view.Units, func(u scheduler.UnitView) bool { return u.Key == key })
	if i < 0 || view.Units[i].Refusal == nil {
		return ""
	}
	return view.Units[i].Refusal.Message()
}

func TestAUnitWithChecksIsReleasedWhenAllAreReady(t *testing.T) {
	w := checking(t, "one", "two")
	w.submit("a/job", cpu("3"))
	w.submit("a/other", cpu("3"))
	w.after(10 * time.Second)
	w.expectPhase("a/job", scheduler.Reserved, wellknown.ReasonAdmissionCheckPending)
	w.expectPhase("a/other", scheduler.Waiting, wellknown.ReasonQuotaExceeded)
	const pending = "the quota is reserved; the job is released when these admission checks are ready, each decided by the controller that its AdmissionCheck names: one, two"
	if got := w.lastMessage("a/job"); got != pending {
		t.Errorf("it shows %q", got)
	}
	w.decide("a/job", "two", scheduler.Ready, "")
	w.after(time.Hour)
	w.expectPhase("a/job", scheduler.Reserved, wellknown.ReasonAdmissionCheckPending)
	w.decide("a/job", "one", scheduler.Ready, "")
	w.settle()
	expectReleased(t, w, "a/job")
	if u := w.units["a/job"]; u.Attempts != 1 || u.Checking.Reservations != 1 {
		t.Fatalf("it is %+v", u)
	}
	var kinds []scheduler.Kind
	for _, s := range w.landed {
		if s.Key == "a/job" {
			kinds = append(kinds, s.Kind)
		}
	}
	if !slices.Equal(kinds, []scheduler.Kind{scheduler.Reserve, scheduler.Explain, scheduler.Dequeue}) {
		t.Fatalf("the writes are %v, want one for each step", kinds)
	}
}

func TestTheMessageOfAPendingCheckIsShown(t *testing.T) {
	w := checking(t, "nodes")
	w.enqueue("a/job", cpu("3"))
	w.decide("a/job", "nodes", scheduler.Pending, "waiting for 3 nodes")
	w.after(scheduler.CheckInterval)
	if got, want := w.lastMessage("a/job"), "admission check nodes is not decided: waiting for 3 nodes"; got != want {
		t.Fatalf("it shows %q, want %q", got, want)
	}
	w.restart()
	w.decide("a/job", "nodes", scheduler.Pending, "waiting for 1 node")
	w.after(2 * scheduler.CheckInterval)
	if got := w.lastMessage("a/job"); !strings.HasSuffix(got, "waiting for 1 node") {
		t.Fatalf("after a restart it shows %q", got)
	}
	writes := len(w.landed)
	w.after(time.Hour)
	if len(w.landed) != writes {
		t.Fatalf("it is written again and again: %v", w.landed[writes:])
	}
}

func TestARetryFreesTheQuotaForOthersAndWaitsLongerEachTime(t *testing.T) {
	w := checking(t, "nodes")
	w.submit("a/job", cpu("3"))
	w.submit("a/other", cpu("3"))
	w.after(10 * time.Second)
	var waits []time.Duration
	for range 4 {
		w.decide("a/job", "nodes", scheduler.Retry, "no capacity")
		failed := w.now
		w.settle()
		w.expectPhase("a/job", scheduler.Waiting, wellknown.ReasonBackoff)
		require.Says(t, "a/job", w.lastMessage("a/job"), "admission check nodes failed: no capacity; the job is queued again at ")
		if got := w.viewedMessage("a/job"); got != w.lastMessage("a/job") {
			t.Fatalf("a view has %q", got)
		}
		w.expectPhase("a/other", scheduler.Reserved, wellknown.ReasonAdmissionCheckPending)
		waits = append(waits, w.units["a/job"].RequeueAt.Sub(failed))
		w.after(waits[len(waits)-1])
		w.finish("a/other")
		w.after(time.Second)
		w.expectPhase("a/job", scheduler.Reserved, wellknown.ReasonAdmissionCheckPending)
		w.delete("a/other")
		w.submit("a/other", cpu("3"))
		w.settle()
	}
	if want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second}; !slices.Equal(waits, want) {
		t.Fatalf("it waited %v, want %v", waits, want)
	}
	if n := w.units["a/job"].Checking.Reservations; n != 5 {
		t.Fatalf("%d reservations, want 5", n)
	}
}

func TestARejectedUnitIsNotTriedUntilItChanges(t *testing.T) {
	w := checking(t, "policy")
	w.enqueue("a/job", cpu("3"))
	w.decide("a/job", "policy", scheduler.Rejected, "no image of that name")
	w.after(time.Hour)
	w.expectPhase("a/job", scheduler.Waiting, wellknown.ReasonAdmissionCheckRejected)
	if got := w.lastMessage("a/job"); got != "admission check policy rejected the job: no image of that name; it is queued again when it changes" {
		t.Fatalf("it shows %q", got)
	}
	requeued := w.writes("a/job", scheduler.Requeue)
	if len(requeued) != 1 || !requeued[0].Rejected || requeued[0].Generation != 1 {
		t.Fatalf("the writes are %+v", requeued)
	}
	w.restart()
	w.after(time.Hour)
	w.expectPhase("a/job", scheduler.Waiting, wellknown.ReasonAdmissionCheckRejected)
	w.change("a/job", activate) // its reader finds another generation
	w.expectPhase("a/job", scheduler.Reserved, wellknown.ReasonAdmissionCheckPending)
}

func TestACheckThatNeverAnswersIsTriedAgainAfterItsTimeout(t *testing.T) {
	w := checking(t, "nodes")
	w.addCheck("nodes", time.Minute)
	w.enqueue("a/job", cpu("3"))
	w.after(time.Minute - time.Second)
	w.expectPhase("a/job", scheduler.Reserved, wellknown.ReasonAdmissionCheckPending)
	w.restart()
	w.after(time.Second)
	w.expectPhase("a/job", scheduler.Waiting, wellknown.ReasonBackoff)
	require.Says(t, "a/job", w.lastMessage("a/job"), "it was not decided within 1m0s")
	w.after(10 * time.Second)
	w.expectPhase("a/job", scheduler.Reserved, wellknown.ReasonAdmissionCheckPending)
	w.addCheck("nodes", 10*time.Second)
	w.after(10 * time.Second)
	w.expectPhase("a/job", scheduler.Waiting, wellknown.ReasonBackoff)
}

func TestACheckThatChangesItsMind(t *testing.T) {
	w := checking(t, "nodes", "other")
	w.enqueue("a/job", cpu("3"))
	w.decide("a/job", "nodes", scheduler.Ready, "")
	w.decide("a/job", "nodes", scheduler.Pending, "")
	w.decide("a/job", "other", scheduler.Ready, "")
	w.after(time.Minute)
	w.expectPhase("a/job", scheduler.Reserved, wellknown.ReasonAdmissionCheckPending)
	w.decide("a/job", "nodes", scheduler.Ready, "")
	w.decide("a/job", "nodes", scheduler.Ready, "") // twice
	w.settle()
	expectReleased(t, w, "a/job")
	w.decide("a/job", "nodes", scheduler.Pending, "")
	w.after(time.Hour)
	expectReleased(t, w, "a/job") // it runs, so it does not wait for the check
	w.expectWrites("a/job", scheduler.Evict)
	w.decide("a/job", "nodes", scheduler.Retry, "the nodes are gone")
	w.settle()
	w.expectWrites("a/job", scheduler.Evict, "AdmissionCheckRetry")
	w.change("a/job", stop)
	w.expectPhase("a/job", scheduler.Waiting, wellknown.ReasonBackoff)
	w.after(10 * time.Second)
	w.expectPhase("a/job", scheduler.Reserved, wellknown.ReasonAdmissionCheckPending)
}

func TestAUnitThatWaitsForAMissingCheckNamesIt(t *testing.T) {
	w := checking(t, "nodes")
	w.removeCheck("nodes")
	w.submit("a/new", cpu("1"))
	w.after(time.Minute)
	w.expectPhase("a/new", scheduler.Waiting, wellknown.ReasonAdmissionCheckMissing)
	require.Says(t, "a/new", w.lastMessage("a/new"), "queue root lists admission check nodes, which does not exist")
}

func TestReservedUnitsGiveTheirQuotaBackWhenTheyAreKeptOut(t *testing.T) {
	for name, test := range map[string]struct {
		do     func(*world)
		reason wellknown.Reason
	}{
		"the queue is held":    {func(w *world) { w.stopQueue(scheduler.Hold) }, wellknown.ReasonQueueStopped},
		"the queue is drained": {func(w *world) { w.stopQueue(scheduler.Drain) }, wellknown.ReasonQueueStopped},
		"it is deactivated":    {func(w *world) { w.write("a/job", deactivate) }, wellknown.ReasonInactive},
		"its quota is gone":    {func(w *world) { w.plant(leaf("root", cpu("4"), "b")) }, wellknown.ReasonNoQuota},
	} {
		t.Run(name, func(t *testing.T) {
			w := checking(t, "nodes")
			w.submit("a/job", cpu("3"), maxTime(30*time.Second))
			w.after(time.Hour) // time in Reserved is not run time
			w.expectPhase("a/job", scheduler.Reserved, wellknown.ReasonAdmissionCheckPending)
			test.do(w)
			w.settle()
			w.expectPhase("a/job", scheduler.Waiting, test.reason)
			w.expectWrites("a/job", scheduler.Evict) // no job had to stop
			if u := w.units["a/job"]; u.Requeues != 0 {
				t.Fatalf("it has to wait: %+v", u)
			}
		})
	}
}

func (w *world) stopQueue(stop scheduler.Stop) {
	set := w.set["root"]
	set.Stop = stop
	w.configure(set)
}

func TestAPreemptorWaitsForItsChecksAndEvictsAgainOnlyAfterItsBackoff(t *testing.T) {
	w := checking(t, "nodes")
	set := w.set["root"]
	set.Preemption.WithinQueue = true
	w.configure(set)
	w.enqueue("a/low", cpu("3"))
	w.decide("a/low", "nodes", scheduler.Ready, "")
	w.settle()
	w.enqueue("a/high", cpu("3"), priority(5))
	w.expectWrites("a/low", scheduler.Evict, "Preempted")
	w.change("a/low", stop)
	w.expectPhase("a/high", scheduler.Reserved, wellknown.ReasonAdmissionCheckPending)
	w.decide("a/high", "nodes", scheduler.Retry, "no capacity")
	w.settle()
	w.expectPhase("a/low", scheduler.Reserved, wellknown.ReasonAdmissionCheckPending) // no room is kept for a unit in backoff
	w.decide("a/low", "nodes", scheduler.Ready, "")
	w.after(9 * time.Second)
	expectReleased(t, w, "a/low")
	w.expectWrites("a/low", scheduler.Evict, "Preempted")
	w.after(time.Second)
	w.expectWrites("a/low", scheduler.Evict, "Preempted", "Preempted")
}

func TestAReservedUnitIsTheFirstVictimAndIsNotProtected(t *testing.T) {
	opts := checkOptions()
	opts.MinRunTime = time.Hour
	w := newWorld(t, opts, leaf("root", cpu("4"), "a"))
	w.addCheck("nodes", 0)
	w.configure(scheduler.QueueChanged{Queue: "root", Checks: "nodes", Preemption: scheduler.Preemption{WithinQueue: true}})
	w.enqueue("a/runs", cpu("2"))
	w.decide("a/runs", "nodes", scheduler.Ready, "")
	w.settle()
	w.submit("a/reserved", cpu("2"))
	w.after(2 * time.Hour)
	w.decide("a/runs", "nodes", scheduler.Ready, "")
	w.submit("a/high", cpu("2"), priority(5))
	w.settle()
	w.expectWrites("a/runs", scheduler.Evict)
	w.expectWrites("a/reserved", scheduler.Evict, "Preempted")
	w.decide("a/reserved", "nodes", scheduler.Ready, "") // too late
	w.settle()
	expectReleased(t, w, "a/runs")
	w.change("a/reserved", stop)
	w.expectPhase("a/high", scheduler.Reserved, wellknown.ReasonAdmissionCheckPending)
}

func TestWhoWritesThatChecksHavePassedDoesNotReleaseTheJob(t *testing.T) {
	w := checking(t, "nodes")
	w.enqueue("a/job", cpu("3"))
	w.forgeRelease("a/job")
	w.settle()
	w.expectWrites("a/job", scheduler.Evict, "NotAdmitted")
}

// Its release was requested while its requeue was in progress. After the requeue, it holds no quota.
func TestAUnitThatIsQueuedAgainIsNotReleasedWhenItsChecksGo(t *testing.T) {
	w := checking(t, "one")
	w.enqueue("a/job", cpu("3"))
	w.expectPhase("a/job", scheduler.Reserved, wellknown.ReasonAdmissionCheckPending)
	w.decide("a/job", "one", scheduler.Retry, "")
	w.hearAndThink()
	w.expectSent(scheduler.Requeue)
	w.configure(scheduler.QueueChanged{Queue: "root"})
	w.settle()
	w.expectPhase("a/job", scheduler.Waiting, wellknown.ReasonBackoff)
	w.after(time.Minute)
	w.expectPhase("a/job", scheduler.Dequeued, "")
}
