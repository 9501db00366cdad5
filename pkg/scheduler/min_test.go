package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

func cpuGPU(cpu, gpu string) map[string]string {
	return map[string]string{"cpu": cpu, "gpu": gpu}
}

// A job that can never be a victim must not take what is guaranteed to others, because they could not get it back.
func TestANonPreemptibleUnitLeavesWhatIsGuaranteedToOthers(t *testing.T) {
	w := newWorld(t, roundRobin(), owning("root", nil, cpuGPU("10", "4"),
		owning("a", map[string]string{"gpu": "2"}, nil), owning("b", cpu("8"), nil)))
	w.submit("a/large", cpuGPU("10", "1"), preemptible(false))
	w.after(2 * time.Second)
	expectReleased(t, w)
	w.expectWrites("a/large", scheduler.Explain, wellknown.ReasonExceedsMinQuota)
	w.enqueue("a/small", cpuGPU("2", "1"), preemptible(false))
	w.submit("a/next", cpuGPU("1", "1"), preemptible(false))
	w.submit("a/victim", cpuGPU("4", "1"))
	w.after(2 * time.Second)
	expectReleased(t, w, "a/small", "a/victim")
	want := "insufficient cpu for non-preemptible jobs in quota root: requested 1, used 2 of 2 that is not guaranteed to any quota"
	if found := w.writes("a/next", scheduler.Explain); len(found) != 1 || found[0].Message != want {
		t.Fatalf("explained by %+v, want %s", found, want)
	}
	w.end("a/small")
	expectReleased(t, w, "a/next", "a/victim")
}

// A thousand units wait for what they are owed. An admission that changes nothing for them checks none of them.
func TestAChargeConcernsOnlyTheReservationsThatItChanges(t *testing.T) {
	for _, n := range []int{10, 1000} {
		root := owning("root", nil, map[string]string{"cpu": "100000", "memory": "100"}, owning("b", nil, nil))
		for i := range 10 {
			root.Children = append(root.Children, owning(fmt.Sprintf("g%d", i), cpu("10000"), nil))
		}
		w := pausing(t, root)
		w.unproven = true
		w.enqueue("b/borrows", cpu("100000"))
		for i := range n {
			w.submit(fmt.Sprintf("g%d/u%04d", i%10, i), cpu(fmt.Sprint(1+i/10)))
		}
		w.settle()
		if got := w.core.Stored().Reservations; got != n {
			t.Fatalf("%d units hold reservations, want %d", got, n)
		}
		before := w.core.Reviews()
		for i := range 20 {
			w.enqueue(fmt.Sprintf("b/%d", i), map[string]string{"memory": "1"})
		}
		if got := len(w.released()); got != 21 {
			t.Fatalf("%d units are released, want 21", got)
		}
		if got := w.core.Reviews() - before; got != 0 {
			t.Errorf("with %d reservations, 20 admissions had %d of them checked again, want 0", n, got)
		}
	}
}

func TestAUnitThatRequestsNothingGetsItsTurnOfTheJobs(t *testing.T) {
	jobs := map[string]string{"cpu": "100", quota.JobsResource: "1"}
	w := newWorld(t, roundRobin(), owning("root", nil, jobs, owning("a", nil, nil), owning("b", cpu("50"), nil)))
	w.enqueue("b/first", cpu("1"))
	w.submit("a/nothing", nil)
	for round := range 3 {
		w.submit(fmt.Sprintf("b/%d", round), cpu("1"))
		w.after(time.Second)
		finishAll(w)
		w.settle()
		if slices.Contains(w.released(), "a/nothing") {
			return
		}
	}
	t.Fatal("a unit that requests nothing, and is the oldest, lost all rounds for a job")
}

func TestWhatIsUsedInAMessageAfterAChangeOfTheTreeIsAllThatIsCharged(t *testing.T) {
	root := owning("root", nil, cpu("20"), owning("a", nil, nil))
	w := newWorld(t, roundRobin(), root)
	w.enqueue("a/zzz", cpu("10"))
	w.submit("a/huge", cpu("15"))
	w.after(2 * time.Second)
	w.plant(owning("root", nil, cpu("12"), owning("a", nil, nil))) // a/huge comes before a/zzz by name
	w.after(2 * time.Second)
	found := w.writes("a/huge", scheduler.Explain)
	want := "can never fit in quota root: requested 15 cpu, max is 12 (used 10); request less, or ask an administrator to raise the max of the quota"
	if last := found[len(found)-1]; last.Message != want {
		t.Errorf("explained by %q, want %q", last.Message, want)
	}
}

func TestMaxJobsSaysWhatWasRequested(t *testing.T) {
	w := newWorld(t, roundRobin(), owning("root", nil, map[string]string{quota.JobsResource: "2"}, owning("a", nil, nil)))
	for i := range 3 {
		w.submit(fmt.Sprint("a/", i), cpu("1"))
	}
	w.after(2 * time.Second)
	want := "job limit reached in quota root: requested 1 job, used 2 of max 2 (kube-queue/max-jobs)"
	if found := w.writes("a/2", scheduler.Explain); len(found) != 1 || found[0].Message != want {
		t.Errorf("explained by %+v, want %q", found, want)
	}
}
