package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// In each scene, a/waits reports a cause for a long time, the cause ends, and a/waits must report another one.
func TestACauseThatIsNoLongerTrueIsReplacedAfterHalfASecond(t *testing.T) {
	full := func(w *world) {
		w.enqueue("a/runs", cpu("4"))
	}
	stop := func(s scheduler.Stop) func(w *world) {
		return func(w *world) { w.configure(scheduler.QueueChanged{Queue: "root", Stop: s}) }
	}
	plant := func(list map[string]string, namespaces ...string) func(w *world) {
		return func(w *world) { w.exact = false; w.plant(leaf("root", list, namespaces...)) }
	}
	invalid := func(w *world) {
		w.core.Apply(w.now, scheduler.QuotaChanged{Missing: &quota.Refusal{Reason: wellknown.ReasonInvalidQuotaTree, Sentence: "invalid"}})
	}
	jobs := func(cpu, n string) map[string]string { return map[string]string{"cpu": cpu, quota.JobsResource: n} }
	for _, test := range []struct {
		name     string
		policy   *queue.Policy
		before   func(w *world)
		asks     string
		shows    wellknown.Reason
		change   func(w *world)
		then     wellknown.Reason
		thenSays string
	}{
		{name: "a queue is resumed", before: func(w *world) { full(w); stop(scheduler.Hold)(w) }, asks: "4", shows: wellknown.ReasonQueueStopped,
			change: stop(scheduler.NotStopped), then: wellknown.ReasonQuotaExceeded},
		{name: "a queue is stopped", before: full, asks: "5", shows: wellknown.ReasonExceedsMaxQuota, change: func(w *world) { plant(cpu("9"), "a")(w); stop(scheduler.Hold)(w) },
			then: wellknown.ReasonQueueStopped},
		{name: "a quota lists the namespace", before: func(w *world) { full(w); plant(cpu("4"), "other")(w) }, asks: "4", shows: wellknown.ReasonNoQuota,
			change: plant(cpu("4"), "a"), then: wellknown.ReasonQuotaExceeded},
		{name: "a tree is fixed", before: func(w *world) { full(w); invalid(w) }, asks: "4", shows: wellknown.ReasonInvalidQuotaTree,
			change: plant(cpu("4"), "a"), then: wellknown.ReasonQuotaExceeded},
		{name: "max is raised", before: full, asks: "5", shows: wellknown.ReasonExceedsMaxQuota,
			change: plant(cpu("6"), "a"), then: wellknown.ReasonQuotaExceeded},
		{name: "max is raised, but not enough", before: full, asks: "9", shows: wellknown.ReasonExceedsMaxQuota,
			change: plant(cpu("6"), "a"), then: wellknown.ReasonExceedsMaxQuota, thenSays: "max is 6"},
		{name: "max is raised, and the unit still lacks the same resource", before: full, asks: "4", shows: wellknown.ReasonQuotaExceeded,
			change: plant(cpu("6"), "a"), then: wellknown.ReasonQuotaExceeded, thenSays: "used 4 of max 6"},
		{name: "max-jobs is raised and cpu is lacking", before: func(w *world) {
			plant(jobs("9", "1"), "a")(w)
			full(w)
		}, asks: "4", shows: wellknown.ReasonMaxJobs, change: plant(jobs("4", "2"), "a"), then: wellknown.ReasonQuotaExceeded},
		{name: "a unit gets to the front", policy: queue.Block, before: func(w *world) {
			full(w)
			w.submit("a/ahead", cpu("4"), priority(1))
		}, asks: "4", shows: wellknown.ReasonNotAtFront, change: func(w *world) { w.delete("a/ahead") }, then: wellknown.ReasonQuotaExceeded},
		{name: "a check is created", before: func(w *world) {
			full(w)
			w.configure(scheduler.QueueChanged{Queue: "root", Checks: scheduler.ChecksOf([]string{"c"})})
		}, asks: "4", shows: wellknown.ReasonAdmissionCheckMissing,
			change: func(w *world) { w.addCheck("c", 0) }, then: wellknown.ReasonQuotaExceeded},
		{name: "a job is activated", before: full, asks: "inactive", shows: wellknown.ReasonInactive,
			change: func(w *world) { w.write("a/waits", activate) }, then: wellknown.ReasonQuotaExceeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, scheduler.Options{Policy: test.policy}, leaf("root", cpu("4"), "a"))
			test.before(w)
			if test.asks == "inactive" {
				w.submit("a/waits", cpu("4"), deactivate)
			} else {
				w.submit("a/waits", cpu(test.asks))
			}
			w.after(time.Minute)
			w.expectWrites("a/waits", scheduler.Explain, test.shows)
			test.change(w)
			w.after(scheduler.CorrectionDelay)
			require.Says(t, "the unit", w.expectWrites("a/waits", scheduler.Explain, test.shows, test.then)[1].Message, test.thenSays)
			w.after(5 * time.Minute)
			w.expectCount("a/waits", scheduler.Explain, 2)
		})
	}
}

func TestManyChangesOfAnAdministratorAreReportedEachInTime(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.enqueue("a/runs", cpu("4"))
	w.submit("a/waits", cpu("4"))
	w.after(2 * time.Second)
	var want []wellknown.Reason
	expect := func(reason wellknown.Reason) {
		t.Helper()
		want = append(want, reason)
		w.after(2 * time.Second)
		w.expectWrites("a/waits", scheduler.Explain, want...)
	}
	expect(wellknown.ReasonQuotaExceeded)
	w.configure(scheduler.QueueChanged{Queue: "root", Stop: scheduler.Hold})
	expect(wellknown.ReasonQueueStopped)
	w.configure(scheduler.QueueChanged{Queue: "root"})
	expect(wellknown.ReasonQuotaExceeded)
	w.configure(scheduler.QueueChanged{Queue: "root", Checks: scheduler.ChecksOf([]string{"c"})})
	expect(wellknown.ReasonAdmissionCheckMissing)
	w.configure(scheduler.QueueChanged{Queue: "root"})
	expect(wellknown.ReasonQuotaExceeded)
	w.write("a/waits", deactivate)
	expect(wellknown.ReasonInactive)
	w.write("a/waits", activate)
	expect(wellknown.ReasonQuotaExceeded)
	// This cause has come and gone before.
	w.configure(scheduler.QueueChanged{Queue: "root", Stop: scheduler.Hold})
	w.after(scheduler.ReasonInterval - 2*time.Second)
	w.expectCount("a/waits", scheduler.Explain, len(want))
	expect(wellknown.ReasonQueueStopped)
}

// The queue still waits for pods, but the unit now waits for another reason.
func TestAUnitThatIsDeactivatedDoesNotShowThatItWaitsForPods(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.configure(scheduler.QueueChanged{Queue: "root", PodsReady: scheduler.PodsReady{Timeout: time.Hour, Blocks: true}})
	w.enqueue("a/runs", cpu("1"))
	w.submit("a/waits", cpu("1"))
	w.after(2 * time.Second)
	w.write("a/waits", deactivate)
	w.after(scheduler.CorrectionDelay)
	w.expectWrites("a/waits", scheduler.Explain, wellknown.ReasonWaitingForPods, wellknown.ReasonInactive)
}

// The unit in front lacks something else, so the one behind is not tried.
func TestAUnitBehindTheFrontIsCorrectedWhenWhatItShowsBecomesFree(t *testing.T) {
	w := newWorld(t, scheduler.Options{Policy: queue.Block}, leaf("root", map[string]string{"cpu": "4", "gpu": "1"}, "a"))
	w.submit("a/1", map[string]string{"cpu": "3", "gpu": "1"})
	w.submit("a/2", cpu("1"))
	w.settle()
	w.submit("a/waits", cpu("1"))
	w.after(2 * time.Second)
	w.submit("a/front", gpu("1"), priority(1))
	w.after(2 * time.Second)
	w.finish("a/2")
	w.after(2 * time.Second)
	w.expectWrites("a/waits", scheduler.Explain, wellknown.ReasonQuotaExceeded, wellknown.ReasonNotAtFront)
}

// Its queue tries nothing until the pods of another unit are ready.
func TestAUnitThatIsNotTriedIsCorrectedWhenWhatItShowsBecomesFree(t *testing.T) {
	w := newWorld(t, roundRobin(), leaf("root", cpu("4"), "a"))
	w.configure(scheduler.QueueChanged{Queue: "root", PodsReady: scheduler.PodsReady{Timeout: time.Hour, Blocks: true}})
	w.enqueue("a/ends", cpu("3"))
	w.write("a/ends", ready)
	w.submit("a/waits", cpu("2"))
	w.after(2 * time.Second)
	w.submit("a/starts", cpu("1"))
	w.after(2 * time.Second)
	w.finish("a/ends")
	w.after(2 * time.Second)
	w.expectWrites("a/waits", scheduler.Explain, wellknown.ReasonQuotaExceeded, wellknown.ReasonWaitingForPods)
}

// It is tried again apart from the units that it was refused with, and refused for a cause other than it shows. Both
// are true then.
func TestAUnitThatIsTriedApartIsCorrectedWhenWhatItShowsIsNoLongerTrue(t *testing.T) {
	large := func(w *world, owner string) {
		w.pod(pods.Pod{Namespace: "a", UID: "large", Owner: owner, Stray: owner == "", Requests: resources.Vector{{ID: w.names.ID("cpu"), Value: 3000}}})
	}
	expectBooked := func(w *world, want bool) {
		w.t.Helper()
		if _, is := w.core.Bookings()["a/waits"]; is != want {
			w.t.Fatalf("whether it has a booking is %v, want %v", is, want)
		}
	}
	for _, test := range []struct {
		name    string
		set     scheduler.QueueChanged
		isTried func(w *world)
		then    wellknown.Reason
	}{
		{name: "its limit changes", isTried: func(w *world) {
			large(w, w.units["a/1"].Owner)
			w.change("a/waits", maxTime(time.Minute))
		}, then: wellknown.ReasonQuotaExceeded},
		{name: "room is booked for it", set: scheduler.QueueChanged{ReserveAfter: 5 * time.Second}, isTried: func(w *world) {
			large(w, w.units["a/1"].Owner)
			w.settle()
			expectBooked(w, false)
			w.after(4 * time.Second)
			w.enqueue("a/other", cpu("3")) // bookings are made when another event occurs
			expectBooked(w, true)
		}, then: wellknown.ReasonQuotaExceeded},
		{name: "its booking ends", set: scheduler.QueueChanged{ReserveAfter: time.Second}, isTried: func(w *world) {
			w.enqueue("a/other", cpu("3"))
			expectBooked(w, true)
			large(w, "") // it is not known to end
			w.settle()
			expectBooked(w, false)
		}, then: wellknown.ReasonQuotaExceeded},
		{name: "another one is evicted for it", set: scheduler.QueueChanged{Preemption: scheduler.Preemption{WithinQueue: true,
			MinRunTime: scheduler.Period{Set: true, Value: 5 * time.Second}}}, isTried: func(w *world) {
			large(w, w.units["a/1"].Owner)
			w.after(5 * time.Second)
			if !w.units["a/1"].Evicted {
				w.t.Fatalf("evicted are %v", w.evicted())
			}
		}, then: wellknown.ReasonPreempting},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, scheduler.Options{Policy: queue.ShortestFirst}, leaf("root", map[string]string{"cpu": "4", quota.JobsResource: "2"}, "a"))
			w.exact = false // a pod exceeds what was admitted
			test.set.Queue, test.set.Policy = "root", queue.ShortestFirst
			w.configure(test.set)
			w.submit("a/1", cpu("1"))
			w.submit("a/2", cpu("1"))
			w.settle()
			w.submit("a/waits", cpu("2"), priority(1))
			w.after(2 * time.Second)
			test.isTried(w)
			w.finish("a/2")
			w.after(2 * time.Second)
			w.expectWrites("a/waits", scheduler.Explain, wellknown.ReasonMaxJobs, test.then)
		})
	}
}

// line is a queue in which many equal units wait. The response to a write takes some time.
type line struct {
	*crowd
	answers []answer
	// written are the explanations in the order of sending, with the reason that each unit shows.
	written []scheduler.Write
	urgent  int
}

type answer struct {
	at time.Time
	of scheduler.Write
}

const answerTakes = 5 * time.Millisecond

func newLine(t *testing.T, waiting int) *line {
	t.Helper()
	l := &line{crowd: newCrowd(t, crowdOf{waiting: waiting, leaves: 1, shapes: 1, full: eachLeaf, policy: queue.Priority})}
	l.core = scheduler.New(scheduler.Options{Policy: queue.Priority, Explanations: 4})
	l.plant(t)
	for range runningPerLeaf + waiting {
		l.core.Apply(l.now, scheduler.UnitChanged{Unit: l.unit()})
	}
	return l
}

// pass lets time pass. If busy, it releases one unit after the other meanwhile.
func (l *line) pass(d time.Duration, busy bool) {
	end := l.now.Add(d)
	for {
		plan, wake := l.core.Next(l.now)
		for _, w := range plan {
			l.answers = append(l.answers, answer{l.now.Add(answerTakes), w})
			if w.Kind == scheduler.Explain {
				l.written = append(l.written, w)
			}
		}
		next := end
		if len(l.answers) > 0 && l.answers[0].at.Before(next) {
			next = l.answers[0].at
		}
		if !wake.IsZero() && wake.Before(next) {
			next = wake
		}
		l.now = next
		if !l.now.Before(end) {
			return
		}
		for len(l.answers) > 0 && !l.answers[0].at.After(l.now) {
			w := l.answers[0].of
			l.answers = l.answers[1:]
			l.version++
			l.core.Apply(l.now, scheduler.Written{Write: &w, Version: l.version, At: l.now})
			if w.Kind == scheduler.Dequeue {
				l.urgent++
				l.running = append(l.running, scheduler.Unit{Key: w.Key, Facts: scheduler.Facts{UID: w.UID, Version: l.version}})
				if busy {
					l.endOne()
				}
			}
		}
	}
}

func (l *line) stop(stop scheduler.Stop) {
	l.core.Apply(l.now, scheduler.QueueChanged{Queue: l.core.QueueNames()[0], Policy: queue.Priority, Stop: stop})
}

// The first 100 units of a queue are corrected within 2 s, and the others in order at 200 writes per second.
func TestOfManyUnitsTheFirstAreCorrectedAtOnceAndTheOthersInOrder(t *testing.T) {
	const waiting = 20_000
	l := newLine(t, waiting)
	l.pass(2*time.Minute, false)
	if len(l.written) != waiting {
		t.Fatalf("%d of %d units have reported a reason", len(l.written), waiting)
	}
	for _, stop := range []scheduler.Stop{scheduler.Hold, scheduler.NotStopped} {
		l.written = nil
		l.stop(stop)
		l.pass(2*time.Second, false)
		// The following units also wait for half a second.
		if n, most := len(l.written), scheduler.PromptUnits+300; n < scheduler.PromptUnits || n > most {
			t.Errorf("%d explanations in 2 s, want %d to %d", n, scheduler.PromptUnits, most)
		}
		first := map[string]bool{}
		for _, w := range l.written {
			first[w.Key] = true
		}
		for i := range scheduler.PromptUnits { // the highest priority, and of that the oldest
			if key := fmt.Sprintf("%s/tfjob-training-%07d-0a1b2c3d", namespaceOf(0), 3*(i+runningPerLeaf)+2); !first[key] {
				t.Fatalf("unit %d in the order, %s, is not corrected in 2 s", i, key)
			}
		}
		l.pass(waiting/200*time.Second+10*time.Second, false)
		if len(l.written) != waiting {
			t.Errorf("in the end %d explanations were written, want one for each of %d units", len(l.written), waiting)
		}
		seen, inOrder := map[string]bool{}, 0
		for i, w := range l.written {
			if seen[w.Key] {
				t.Fatalf("%s is written twice", w.Key)
			}
			seen[w.Key] = true
			if i > 0 && w.Key > l.written[i-1].Key {
				inOrder++
			}
		}
		if inOrder < waiting*98/100 {
			t.Errorf("%d of %d units follow the one before them in the queue", inOrder, waiting)
		}
	}
}

// While releases are in progress, corrections are sent more slowly, and releases do not wait for them.
func TestCorrectionsDelayNoRelease(t *testing.T) {
	const waiting = 20_000
	rate := func(correct bool) (released, explained int) {
		l := newLine(t, waiting)
		l.pass(2*time.Minute, false)
		l.written = nil
		if correct {
			l.stop(scheduler.Hold)
			l.pass(110*time.Second, false)
			l.stop(scheduler.NotStopped)
		}
		for range runningPerLeaf { // one by one from now on
			l.endOne()
		}
		before, explained := l.urgent, len(l.written)
		l.pass(4*time.Second, true)
		return l.urgent - before, len(l.written) - explained
	}
	alone, _ := rate(false)
	released, explained := rate(true)
	if alone < 3000 || released < alone*98/100 { // a unit that is being explained is released afterwards
		t.Errorf("%d units were released in 4 s, and %d while others were corrected", alone, released)
	}
	if explained == 0 || explained > 2*scheduler.PromptUnits+4*20+10 {
		t.Errorf("%d explanations were sent in 4 s, want 20 per second and those of the first units", explained)
	}
}

// A queue that keeps being stopped and resumed costs a bounded number of writes.
func TestAQueueThatIsStoppedAndResumedAllTheTimeCostsBoundedWrites(t *testing.T) {
	l := newLine(t, 1000)
	l.pass(time.Minute, false)
	l.written = nil
	for i := range 60 {
		l.stop([]scheduler.Stop{scheduler.Hold, scheduler.NotStopped}[i%2])
		l.pass(2*time.Second, false)
	}
	reports := map[string]int{}
	for _, w := range l.written {
		reports[w.Key]++
	}
	if len(reports) != 1000 {
		t.Fatalf("%d units reported, want all 1000", len(reports))
	}
	for key, n := range reports {
		if n > 2+2*60/30 { // two at first, then one every 30 s
			t.Fatalf("%s reported %d times in two minutes", key, n)
		}
	}
}
