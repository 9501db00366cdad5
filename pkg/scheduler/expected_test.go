package scheduler_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

func expects(d time.Duration) func(*scheduler.Unit) {
	return func(u *scheduler.Unit) { u.Expected = scheduler.ExpectedOf(int32(d / time.Second)) }
}

func TestAnExpectedTimeIsStoredWithinOnePercent(t *testing.T) {
	for _, seconds := range []int32{1, 59, 61, 3600, 86_399, 604_801, math.MaxInt32} {
		if got := scheduler.ExpectedOf(seconds).Duration().Seconds(); math.Abs(got-float64(seconds)) > 0.01*float64(seconds) {
			t.Errorf("%d s are stored as %v s", seconds, got)
		}
	}
	if got := scheduler.ExpectedOf(-1); got != 0 {
		t.Errorf("a negative time is %d", got)
	}
}

// one returns a world with a quota for one unit at a time, which a first unit uses.
func one(t *testing.T) *world {
	w := newWorld(t, scheduler.Options{Policy: queue.ShortestFirst}, leaf("root", cpu("1"), "a"))
	w.enqueue("a/first", cpu("1"))
	return w
}

// expectOrder expects the units to be released in this order when each ends.
func expectOrder(t *testing.T, w *world, keys ...string) {
	t.Helper()
	w.settle()
	for _, key := range keys {
		w.end(w.released()[0])
		expectReleased(t, w, key)
	}
}

func TestUnitsAreOrderedByTheirLimitThenByWhatIsExpected(t *testing.T) {
	w := one(t)
	w.submit("a/none", cpu("1"))
	w.submit("a/month", cpu("1"), expects(30*24*time.Hour)) // not behind the unit that declares nothing
	w.submit("a/week", cpu("1"), maxTime(7*24*time.Hour))
	w.submit("a/both", cpu("1"), maxTime(6*time.Hour), expects(time.Second)) // the limit counts
	w.submit("a/hour", cpu("1"), expects(time.Hour))                         // 5 hours
	w.submit("a/long", cpu("1"), maxTime(4*time.Hour))
	expectOrder(t, w, "a/long", "a/hour", "a/both", "a/month", "a/none", "a/week")
}

// When 20 jobs of 2 CPUs have ended, waiting units are reordered.
func TestUnitsThatDeclareNothingAreOrderedByTheSquareOfTheirSize(t *testing.T) {
	w := newWorld(t, scheduler.Options{Policy: queue.ShortestFirst}, leaf("root", map[string]string{quota.JobsResource: "1"}, "a"))
	for i := range 20 {
		w.settle()
		for _, key := range w.released() {
			w.finish(key)
		}
		w.submit(fmt.Sprintf("a/past%02d", i), cpu("2"))
	}
	w.settle()
	w.submit("a/1", cpu("1"), expects(30*24*time.Hour)) // 3 hours
	w.submit("a/2", cpu("2"))                           // 12 hours
	w.submit("a/4", cpu("4"))                           // 2 days
	w.submit("a/4-day", cpu("4"), maxTime(24*time.Hour))
	w.submit("a/4-week", cpu("4"), maxTime(7*24*time.Hour))
	w.submit("a/9", cpu("9"), maxTime(5*time.Hour))
	expectOrder(t, w, "a/1", "a/9", "a/2", "a/4-day", "a/4", "a/4-week")
}

// The ID of a resource that is no longer used is assigned to another one, about which nothing is known.
func TestWhatJobsUsuallyRequestIsForgottenWithTheResource(t *testing.T) {
	w := newWorld(t, scheduler.Options{Policy: queue.ShortestFirst}, leaf("root", map[string]string{quota.JobsResource: "1"}, "a"))
	next := func(key string, request map[string]string) {
		for _, past := range w.released() {
			w.end(past)
			w.delete(past)
		}
		w.enqueue(key, request)
	}
	for i := range 20 {
		next(fmt.Sprintf("a/past%02d", i), map[string]string{"example.com/old": "1"})
	}
	next("a/runs", cpu("1"))
	id := w.names.ID("example.com/old")
	w.forget()
	if again := w.names.ID("example.com/new"); again != id {
		t.Fatalf("the ID %d is not assigned again, but %d", id, again)
	}
	w.submit("a/x-4", map[string]string{"example.com/new": "4"})
	w.submit("a/y-1", map[string]string{"example.com/new": "1"})
	expectOrder(t, w, "a/x-4", "a/y-1")
}

// A namespace whose jobs run longer than declared gains nothing over others in the same quota, from its first job on.
func TestANamespaceWhoseJobsRunLongerThanExpectedGainsNothing(t *testing.T) {
	w := newWorld(t, scheduler.Options{Policy: queue.ShortestFirst}, leaf("root", cpu("1"), "honest", "liar"))
	w.enqueue("liar/first", cpu("1"), expects(3*time.Minute))
	w.write("liar/first", expects(10*time.Hour))               // a user may change a unit that was created by hand
	w.submit("honest/next", cpu("1"), expects(30*time.Minute)) // 150 minutes
	w.submit("liar/next", cpu("1"), expects(10*time.Minute))   // 50 minutes, then 1000
	w.after(time.Hour)
	expectOrder(t, w, "honest/next", "liar/next")
}

// After the limit of a running job was raised, the next job of the namespace counts as one of 50 minutes.
func TestANamespaceThatRaisesLimitsOfRunningJobsGainsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		limit time.Duration
		first string
	}{
		"raised": {10 * time.Hour, "honest/next"}, "removed": {0, "honest/next"}, "lowered": {2 * time.Hour, "liar/next"}, "the same": {3 * time.Hour, "liar/next"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scheduler.Options{Policy: queue.ShortestFirst}, leaf("root", cpu("1"), "honest", "liar"))
			w.enqueue("liar/first", cpu("1"), maxTime(3*time.Hour))
			w.submit("liar/next", cpu("1"), maxTime(10*time.Minute))
			w.submit("honest/next", cpu("1"), maxTime(30*time.Minute))
			w.settle()
			w.change("liar/first", maxTime(c.limit))
			w.end("liar/first")
			expectReleased(t, w, c.first)
		})
	}
}

// The error of a limit that was raised twice is that of the first one.
func TestALimitThatWasRaisedInStepsCountsAsItWasAtTheRelease(t *testing.T) {
	w := newWorld(t, scheduler.Options{Policy: queue.ShortestFirst}, leaf("root", cpu("1"), "honest", "liar"))
	w.enqueue("liar/first", cpu("1"), maxTime(3*time.Minute))
	w.submit("liar/next", cpu("1"), maxTime(10*time.Minute)) // 1000 minutes
	w.submit("honest/next", cpu("1"), maxTime(4*time.Hour))
	for _, limit := range []time.Duration{time.Hour, 2 * time.Hour, 0} {
		w.change("liar/first", maxTime(limit))
	}
	w.after(time.Hour)
	expectOrder(t, w, "honest/next", "liar/next")
}

// After 20 jobs that ran 20 times longer than expected, waiting units are reordered.
func TestAQuotaWhoseJobsRunLongerThanExpectedGainsNothing(t *testing.T) {
	for _, ended := range []bool{true, false} {
		w := newWorld(t, scheduler.Options{Policy: queue.ShortestFirst}, leaf("root", cpu("20"), "a"))
		for i := range 20 {
			w.submit(fmt.Sprintf("a/liar%02d", i), cpu("1"), expects(3*time.Minute))
		}
		w.settle()
		w.submit("a/expected", cpu("20"), expects(10*time.Minute))
		w.submit("a/limited", cpu("20"), maxTime(2*time.Hour))
		w.after(time.Hour)
		for i := range 20 {
			if key := fmt.Sprintf("a/liar%02d", i); ended {
				w.finish(key)
			} else { // its owner suspends and deletes it, so the core does not see its end
				w.write(key, func(u *scheduler.Unit) { u.Evicted, u.Stopped = true, true })
				w.delete(key)
			}
		}
		w.settle()
		expectReleased(t, w, "a/limited")
	}
}

func TestAnExpectedTimeEnforcesNothingAndNoReservationReliesOnIt(t *testing.T) {
	w := newWorld(t, scheduler.Options{Policy: queue.ShortestFirst}, leaf("root", cpu("4"), "a"))
	w.configure(scheduler.QueueChanged{Queue: "root", Policy: queue.ShortestFirst, ReserveAfter: time.Minute})
	w.enqueue("a/running", cpu("3"), expects(time.Minute))
	w.enqueue("a/large", cpu("4"), expects(time.Minute))
	w.after(time.Hour)
	expectReleased(t, w, "a/running")
	w.enqueue("a/short", cpu("1"), expects(time.Second)) // it is not known to end before the large one can start
	expectReleased(t, w, "a/running")
	if start, booked := w.core.Bookings()["a/large"]; !booked || !start.IsZero() {
		t.Errorf("the start of a reservation relies on what is expected: booked %t, %v", booked, start)
	}
	w.expectWrites("a/running", scheduler.Evict)
}
