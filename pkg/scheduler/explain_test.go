package scheduler_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

func TestAReasonIsWrittenAfterASecondOfWaiting(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/one", cpu("3"))
	w.submit("a/two", cpu("3"))
	w.after(999 * time.Millisecond)
	w.expectCount("a/two", scheduler.Explain, 0)
	w.after(time.Millisecond)
	found := w.expectWrites("a/two", scheduler.Explain, wellknown.ReasonQuotaExceeded)
	require.Says(t, "the message", found[0].Message, "root", "cpu", "requested 3", "used 3 of max 4")
}

// job-extensions writes why a job is invalid. When the job is valid again, it waits for the same reason as before.
func TestAReasonThatAnotherWriterHasReplacedIsWrittenAgain(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/one", cpu("3"))
	w.submit("a/two", cpu("3"))
	w.after(2 * time.Second)
	w.expectCount("a/two", scheduler.Explain, 1)
	w.change("a/two", func(u *scheduler.Unit) {
		u.Inactive, u.HeldReported, u.Reason = true, true, wellknown.ReasonInvalidRequest
		u.Held = &quota.Refusal{Reason: wellknown.ReasonInvalidRequest, Sentence: "it is invalid"}
	})
	w.write("a/two", func(u *scheduler.Unit) { u.Inactive, u.Held = false, nil })
	w.after(2 * time.Second)
	if found := w.writes("a/two", scheduler.Explain); len(found) != 2 || found[1].Reason != wellknown.ReasonQuotaExceeded {
		t.Errorf("the unit still shows that it is invalid: %+v", found)
	}
}

// lacksAJob returns a world in which a/late has reported that it lacks cpu, and now lacks a job.
func lacksAJob(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, roundRobin(), leaf("root", map[string]string{"cpu": "4", quota.JobsResource: "2"}, "a"))
	w.submit("a/big", cpu("3"))
	w.submit("a/late", cpu("2"))
	w.after(5 * time.Second)
	w.enqueue("a/small", cpu("1"))
	w.finish("a/big")
	w.submit("a/other", cpu("1"), priority(1))
	w.settle()
	expectReleased(t, w, "a/other", "a/small")
	return w
}

func TestACauseThatComesAndGoesIsReportedEach30Seconds(t *testing.T) {
	w := lacksAJob(t)
	w.after(scheduler.CorrectionDelay - time.Millisecond)
	w.expectWrites("a/late", scheduler.Explain, wellknown.ReasonQuotaExceeded)
	w.after(time.Millisecond)
	w.expectWrites("a/late", scheduler.Explain, wellknown.ReasonQuotaExceeded, wellknown.ReasonMaxJobs)

	becomes := func(asks string) {
		w.delete("a/other")
		w.submit("a/other", cpu(asks), priority(1))
	}
	for range 10 {
		becomes("3") // cpu again
		w.after(10 * time.Second)
		becomes("1") // then max-jobs
		w.after(10 * time.Second)
	}
	if got := w.writes("a/late", scheduler.Explain); len(got) < 7 || len(got) > 10 {
		t.Fatalf("in 200 s it reported %v, want three at first and then one each 30 s", got)
	}
	becomes("3")
	w.after(scheduler.ReasonInterval)
	if got := last(w.writes("a/late", scheduler.Explain)); got.Reason != wellknown.ReasonQuotaExceeded {
		t.Fatalf("reported in the end: %v", got)
	}
}

func TestACauseThatIsStillTrueIsReplacedWhenAnotherHasLastedFor30Seconds(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", map[string]string{"cpu": "4", quota.JobsResource: "2"}, "a"))
	w.submit("a/1", cpu("1"))
	w.submit("a/2", cpu("1"))
	w.settle()
	w.submit("a/late", cpu("2"))
	w.after(5 * time.Second)
	w.submit("a/3", cpu("3"), priority(1))
	w.finish("a/1")
	w.settle()
	expectReleased(t, w, "a/2", "a/3") // still two jobs, and still no cpu
	w.after(scheduler.ReasonInterval - time.Millisecond)
	w.expectCount("a/late", scheduler.Explain, 1)
	w.after(time.Second)
	w.expectWrites("a/late", scheduler.Explain, wellknown.ReasonMaxJobs, wellknown.ReasonQuotaExceeded)
}

func TestAfterARestartAUnitIsReportedAgainOnlyWhereItWaitsInAnotherGroup(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/one", cpu("3"))
	w.submit("a/two", cpu("3"))
	w.after(scheduler.ReasonInterval)
	shows := func(times int, group string) {
		t.Helper()
		found := w.writes("a/two", scheduler.Explain)
		if len(found) != times || found[times-1].Quota != group || !strings.Contains(found[times-1].Message, group) {
			t.Errorf("it reported %+v, want %d times and the last of %s", found, times, group)
		}
	}
	shows(1, "root")
	w.restart()
	w.after(scheduler.ReasonInterval)
	shows(1, "root")
	w.root = leaf("other", cpu("4"), "a")
	w.restart()
	w.after(scheduler.ReasonInterval)
	shows(2, "other")
}

func TestWhatCanNeverFitIsSaidAtOnceAndBlocksNobody(t *testing.T) {
	for _, policy := range queue.Policies() {
		w := newWorld(t, scheduler.Options{Policy: policy}, leaf("root", cpu("4"), "a"))
		w.submit("a/impossible", cpu("5"), priority(9))
		w.submit("a/possible", cpu("4"))
		w.settle()
		expectReleased(t, w, "a/possible")
		found := w.writes("a/impossible", scheduler.Explain)
		if len(found) != 1 || found[0].Reason != wellknown.ReasonExceedsMaxQuota || found[0].Resource != "cpu" || found[0].Asked != 5000 {
			t.Fatalf("%s: want ExceedsMaxQuota at once, got %+v", policy, found)
		}
	}
}

func TestWhatIsBeyondItsGuaranteeIsReportedSoAtOnce(t *testing.T) {
	w := newWorld(t, roundRobin(), owning("root", cpu("2"), cpu("4")))
	w.enqueue("root/fixed", cpu("3"), preemptible(false))
	w.expectWrites("root/fixed", scheduler.Explain, wellknown.ReasonExceedsMinQuota)
}

func TestWhoWaitedForAQuotaIsReportedAtOnceThatItIsTooSmall(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "elsewhere"))
	w.submit("a/one", cpu("5"))
	w.after(2 * time.Second)
	w.plant(leaf("root", cpu("4"), "a"))
	w.settle()
	w.expectWrites("a/one", scheduler.Explain, wellknown.ReasonNoQuota, wellknown.ReasonExceedsMaxQuota)
}

func TestAUnitThatIsHeldAndUnheldAllTheTimeReportsSoAtMostEach30Seconds(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/one", cpu("3"))
	w.submit("a/two", cpu("3"))
	for i := range 60 {
		w.write("a/two", func(u *scheduler.Unit) {
			u.Held = nil
			if i%2 == 0 {
				u.Held = &quota.Refusal{Reason: wellknown.ReasonInactive, Sentence: "held"}
			}
		})
		w.after(3 * time.Second)
	}
	w.expectCount("a/two", scheduler.Explain, 8) // in three minutes: three at first and then one each 30 s
}

func TestAChangeOfQuotaForgetsWhatItWasAboutToReport(t *testing.T) {
	w := lacksAJob(t) // which must be reported
	w.plant(leaf("root", cpu("4"), "a"))
	w.delete("a/late")
	w.after(time.Minute)
	expectReleased(t, w, "a/other", "a/small")
}

func last(writes []scheduler.Write) scheduler.Write {
	if len(writes) == 0 {
		return scheduler.Write{}
	}
	return writes[len(writes)-1]
}

func TestTheHeadOfAStoppedQueueSaysSo(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.configure(scheduler.QueueChanged{Queue: "root", Stop: scheduler.Hold})
	w.enqueue("a/1", cpu("4"))
	if stats := w.core.ChangedQueues(w.now); len(stats) != 1 || stats[0].HeadReason != wellknown.ReasonQueueStopped {
		t.Fatalf("%+v", stats)
	}
	w.after(time.Minute)
	require.Says(t, "a/1", w.lastMessage("a/1"), "kubectl kube-queue resume root,")
}

func TestTheHighestPriorityOfAQueueIsThatOfItsUnits(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	expect := func(when string, want *int32) {
		t.Helper()
		w.settle()
		stats := w.core.ChangedQueues(w.now)
		if len(stats) != 1 || !reflect.DeepEqual(stats[0].HighestPriority, want) {
			t.Fatalf("%s: %+v, want the priority %v", when, stats, want)
		}
	}
	w.configure(scheduler.QueueChanged{Queue: "root"})
	expect("without units", nil)
	w.submit("a/1", cpu("4"), priority(-5))
	expect("with one that holds quota", new(int32(-5)))
	w.submit("a/2", cpu("4"), priority(3))
	w.submit("a/3", cpu("2"), priority(2))
	expect("with others that wait", new(int32(3)))
	w.configure(scheduler.QueueChanged{Queue: "root", MaxPriority: scheduler.Cap{Set: true, Value: 2}})
	expect("with a cap", new(int32(2)))
}

func TestABackoffThatIsOverIsActedUponAtOnce(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.submit("a/1", cpu("4"), func(u *scheduler.Unit) { u.RequeueAt = w.now.Add(10 * time.Second) })
	w.hearAndThink()
	w.now = w.now.Add(10 * time.Second)
	w.think()
	if got := releases(w.sent); len(got) != 1 {
		t.Fatalf("under way are %+v, want the release", w.sent)
	}
}

// A unit that was held shows another cause than its neighbors, which report a cause that comes and goes on their own
// timers.
func TestAUnitRequeuedWhileACauseComesAndGoesReportsOne(t *testing.T) {
	both := map[string]string{"cpu": "4", "gpu": "4"}
	w := newWorld(t, roundRobin(), leaf("root", both, "a"))
	w.submit("a/cpu-1", cpu("4"))
	w.submit("a/gpu", map[string]string{"gpu": "4"})
	w.settle()
	w.submit("a/2", both)
	w.submit("a/3", both, deactivate)
	w.after(time.Minute)
	w.end("a/cpu-1")
	w.write("a/3", activate)
	w.after(2 * time.Second)
	w.enqueue("a/cpu-2", cpu("4"))
	w.finish("a/gpu")
	w.after(10 * time.Minute)
	if reported := last(w.writes("a/3", scheduler.Explain)); !strings.HasPrefix(reported.Message, "insufficient cpu") {
		t.Fatalf("a/3 reports %+v", reported)
	}
}

// explaining20 returns a full quota that 20 units wait for. Explanations for two of them, the limit, are in progress.
func explaining20(t *testing.T) *world {
	w := newWorld(t, scheduler.Options{Policy: queue.Priority, Explanations: 2}, leaf("root", cpu("1"), "a"))
	w.enqueue("a/runs", cpu("1"))
	for i := range 20 {
		w.submit(fmt.Sprintf("a/%02d", i), cpu("1"))
	}
	w.hearAndThink()
	w.now = w.now.Add(time.Minute)
	w.think()
	if len(w.sent) != 2 {
		t.Fatalf("%d writes are under way, want 2 explanations", len(w.sent))
	}
	return w
}

func TestExplainingToManyWhyTheyWaitHoldsNobodyUp(t *testing.T) {
	w := explaining20(t)
	// A unit without an explanation in progress is released immediately.
	w.finish("a/runs")
	w.write("a/19", func(u *scheduler.Unit) { u.Priority = 9 })
	w.hearAndThink()
	if last := w.sent[len(w.sent)-1]; last.Kind != scheduler.Dequeue || last.Key != "a/19" {
		t.Fatalf("under way are %+v, want the release of a/19", w.sent)
	}
	// While that is in progress, the others are reported one after another with pauses.
	for range 2 {
		w.land(0)
		w.answer(0)
		w.think()
	}
	explaining := func() (n int) {
		for _, write := range w.sent {
			if write.Kind == scheduler.Explain {
				n++
			}
		}
		return n
	}
	if n := explaining(); n != 0 {
		t.Fatalf("%d explanations are under way with a release, and none is due", n)
	}
	w.now = w.now.Add(scheduler.ExplainInterval)
	if w.think(); explaining() != 1 {
		t.Fatalf("%d explanations are under way with a release, want 1", explaining())
	}
	w.settle()
	for i := range 19 {
		key := fmt.Sprintf("a/%02d", i)
		w.expectCount(key, scheduler.Explain, 1)
	}
	w.expectCount("a/19", scheduler.Explain, 0) // it was released before its turn came
}

func TestWhatCanNeverFitIsReportedAtOnceHoweverManyAreToBeReported(t *testing.T) {
	w := explaining20(t)
	w.submit("a/never", cpu("2"))
	w.finish("a/runs") // and a release will be in progress
	w.hearAndThink()
	w.land(0)
	w.answer(0)
	w.think()
	if last := w.sent[len(w.sent)-1]; last.Key != "a/never" || last.Kind != scheduler.Explain {
		t.Errorf("under way are %+v, want a/never reported next", w.sent)
	}
}

// The cause of each waiting unit changes when another one reaches the front.
func TestASilentCoreGivesNoReasonsAndIsNotCalledForThem(t *testing.T) {
	c := newCrowd(t, crowdOf{waiting: 3, leaves: 1, shapes: 1, full: eachLeaf, policy: queue.Block})
	c.core = scheduler.New(scheduler.Options{Policy: c.policy, Silent: true})
	c.plant(t)
	c.fill(t)
	flush := c.now.Add(scheduler.FlushInterval)
	for range 2 {
		if plan, wake := c.core.Next(c.now); len(plan) > 0 || !wake.Equal(flush) {
			t.Fatalf("%d writes, called again at %v, want none before %v", len(plan), wake, flush)
		}
		c.now = c.now.Add(time.Minute)
		c.replaceOne(t)
	}
}
