package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/test/require"
)

// playedJob is a job that runs for some time after its release. Its limit is at least that long, or 0 for none.
type playedJob struct {
	key                    string
	submitted, runs, limit time.Duration
	cpu                    int64
	// least, if set, is the number of pods that the job can start with. Each has a CPU.
	least    int32
	priority int32
	unit     *scheduler.Unit
	// started is when it was admitted. It is released then or, if its queue has checks, after checkTakes.
	started time.Time
}

const checkTakes = 20 * time.Minute

// event is when the job, which holds quota, is next released or ends.
func (j *playedJob) event() time.Time {
	switch {
	case j.unit.Phase == scheduler.Running:
		return j.unit.DequeuedAt.Add(j.runs)
	case j.unit.Checking.States[0].Verdict == scheduler.Pending:
		return j.started.Add(checkTakes)
	}
	return time.Time{}
}

// play plays jobs until all have ended, and calls seen after each decision.
func play(t interface{ Fatalf(string, ...any) }, root tree.Node, options tree.Options, settings []scheduler.QueueChanged, jobs []*playedJob, seen func(core *scheduler.Scheduler, now time.Time)) {
	names := resources.NewNames()
	backend, _, err := tree.New(names, root, options)
	if err != nil {
		t.Fatalf("%v", err)
	}
	core := scheduler.New(scheduler.Options{Explanations: 1})
	start := time.Unix(1_000_000, 0)
	now, version := start, uint64(0)
	core.Apply(now, scheduler.QuotaChanged{Backend: backend})
	core.Apply(now, scheduler.CheckChanged{Name: "x"})
	for _, q := range settings {
		core.Apply(now, q)
	}
	core.Apply(now, scheduler.Listed{})
	byKey := map[string]*playedJob{}
	apply := func(j *playedJob) {
		version++
		j.unit.Version = version
		core.Apply(now, scheduler.UnitChanged{Unit: *j.unit})
	}
	left := len(jobs)
	for left > 0 {
		plan, wake := core.Next(now)
		for i := range plan {
			w := &plan[i]
			j := byKey[w.Key]
			version++
			j.unit.Version = version
			u := j.unit
			switch w.Kind {
			case scheduler.Reserve:
				u.Phase, u.Quota, j.started = scheduler.Reserved, w.Quota, now
				u.Checking = &scheduler.Checking{Reservations: w.Reservation, States: []scheduler.CheckState{{Name: "x", Verdict: scheduler.Pending, Since: now.UnixMicro()}}}
				granted(u, w.Grant.Count)
			case scheduler.Dequeue:
				if u.Phase == scheduler.Waiting {
					j.started = now
				}
				u.Phase, u.Attempts, u.DequeuedAt, u.Quota = scheduler.Running, w.Attempt, now, w.Quota
				granted(u, w.Grant.Count)
			case scheduler.Evict:
				u.Evicted, u.Stopped, u.Eviction = true, true, scheduler.Eviction{At: now, For: w.EvictedFor}
			case scheduler.Requeue:
				u.Phase, u.Evicted, u.Stopped, u.Eviction = scheduler.Waiting, false, false, scheduler.Eviction{}
				u.Requeues, u.RequeueAt = w.Requeue.Count, w.Requeue.Until
				granted(u, 0)
				if u.Checking != nil {
					u.Checking = &scheduler.Checking{Reservations: u.Checking.Reservations}
				}
			}
			core.Apply(now, scheduler.Written{Write: w, Version: version, At: now})
			if w.Kind == scheduler.Dequeue || w.Kind == scheduler.Reserve || w.Kind == scheduler.Evict {
				apply(j)
			}
		}
		seen(core, now)
		if len(plan) > 0 {
			continue
		}
		next := wake
		sooner := func(at time.Time) {
			if next.IsZero() || at.Before(next) {
				next = at
			}
		}
		for _, j := range jobs {
			switch {
			case j.unit == nil:
				sooner(start.Add(j.submitted))
			case holds(j.unit) && !j.event().IsZero():
				sooner(j.event())
			}
		}
		if next.IsZero() || next.Sub(start) > 1000*time.Hour {
			t.Fatalf("%d jobs never start", left)
		}
		if next.After(now) {
			now = next
		}
		for _, j := range jobs {
			switch {
			case j.unit == nil && !start.Add(j.submitted).After(now):
				j.unit = &scheduler.Unit{Key: j.key, Facts: scheduler.Facts{UID: j.key, Submitted: now.UnixMicro(), Priority: j.priority, MaxSeconds: int32(j.limit / time.Second),
					Demand: quota.Demand{Preemptible: true, Requests: resources.Vector{{ID: names.ID(quota.JobsResource), Value: 1}, {ID: names.ID("cpu"), Value: 1000 * j.cpu}}}}}
				if j.least > 0 {
					j.unit.Elastic = &scheduler.Elastic{PodSet: "workers", Min: j.least, Count: int32(j.cpu), Pod: resources.Vector{{ID: names.ID("cpu"), Value: 1000}}}
				}
				byKey[j.key] = j
				apply(j)
			case j.unit == nil || !holds(j.unit) || j.event().IsZero() || j.event().After(now):
			case j.unit.Phase == scheduler.Reserved:
				j.unit.Checking = &scheduler.Checking{Reservations: j.unit.Checking.Reservations, States: []scheduler.CheckState{{Name: "x", Verdict: scheduler.Ready}}}
				apply(j)
			default:
				j.unit.Phase = scheduler.Ended
				left--
				apply(j)
			}
		}
	}
}

// limited is a node with a max of CPUs.
func limited(name string, max int64, children ...tree.Node) tree.Node {
	n := tree.Node{Name: name, Children: children, Max: map[string]resource.Quantity{"cpu": *resource.NewQuantity(max, resource.DecimalSI)}}
	if len(children) == 0 {
		n.Namespaces = []string{name}
	}
	return n
}

// drawQueues draws a tree and the settings of its queues. In some trees, a quota is below another one with jobs.
func drawQueues(t *rapid.T, node func(name string, children ...tree.Node) tree.Node) (root tree.Node, settings []scheduler.QueueChanged, namespaces []string) {
	queues, namespaces := []string{"root-a", "root-b"}, []string{"a", "b"}
	root = limited("root", int64(rapid.IntRange(8, 16).Draw(t, "root")), node("a"), node("b"))
	if rapid.Bool().Draw(t, "inner") {
		dept := node("dept", root.Children[0])
		dept.Namespaces = []string{"d"}
		root.Children[0] = dept
		queues, namespaces = []string{"root-dept", "root-dept-a", "root-b"}, []string{"a", "b", "d"}
	}
	if rapid.Bool().Draw(t, "unlimited root") {
		root.Max = nil
	}
	for _, q := range queues {
		settings = append(settings, scheduler.QueueChanged{Queue: q, Policy: rapid.SampledFrom(queue.Policies()).Draw(t, "policy"),
			Checks:       rapid.SampledFrom([]scheduler.Checks{"", "", "x"}).Draw(t, "checks"),
			ReserveAfter: time.Duration(rapid.SampledFrom([]int{0, 1, 10, 30}).Draw(t, "reserve")) * time.Minute})
	}
	return root, settings, namespaces
}

// drawJobs draws jobs that run for up to half an hour.
func drawJobs(t *rapid.T, namespaces []string, most int) (jobs []*playedJob) {
	span, limited := rapid.SampledFrom([]int{10, 120}).Draw(t, "span"), rapid.IntRange(0, 4).Draw(t, "limited of 4")
	for i := range rapid.IntRange(5, most).Draw(t, "jobs") {
		j := &playedJob{key: fmt.Sprintf("%s/u%02d", rapid.SampledFrom(namespaces).Draw(t, "namespace"), i), cpu: int64(rapid.IntRange(1, 4).Draw(t, "cpu")),
			submitted: time.Duration(rapid.IntRange(0, span).Draw(t, "submitted")) * time.Minute, runs: time.Duration(rapid.IntRange(1, 30).Draw(t, "runs")) * time.Minute}
		if rapid.IntRange(1, 4).Draw(t, "limited") <= limited {
			j.limit = max(j.runs, time.Duration(rapid.IntRange(1, 60).Draw(t, "limit"))*time.Minute)
		}
		if j.cpu > 1 && rapid.IntRange(0, 2).Draw(t, "elastic") == 0 {
			j.least = int32(rapid.IntRange(1, int(j.cpu)).Draw(t, "least"))
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// If limits are true, a unit with a booking starts at the time first computed, or earlier. If its start is unknown, it
// at least does not wait only for jobs that were admitted later and have no limit.
func TestPropertyAReservationIsNotDelayedByJobsThatCameLater(t *testing.T) {
	known, unknown, backfilled := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		root, settings, namespaces := drawQueues(t, func(name string, children ...tree.Node) tree.Node {
			return limited(name, int64(rapid.IntRange(4, 16).Draw(t, name)), children...)
		})
		jobs := drawJobs(t, namespaces, 60)
		booked, promised := map[string]time.Time{}, map[string]time.Time{}
		play(t, root, tree.Options{}, settings, jobs, func(core *scheduler.Scheduler, now time.Time) {
			starts := core.Bookings()
			for key, at := range starts {
				if booked[key].IsZero() {
					booked[key] = now
				}
				if promised[key].IsZero() {
					promised[key] = at
				}
				if !slices.ContainsFunc(jobs, func(j *playedJob) bool {
					return j.unit != nil && holds(j.unit) && (!j.started.After(booked[key]) || j.limit > 0 && j.unit.Phase == scheduler.Running)
				}) {
					t.Fatalf("%s waits only for jobs that came later and may never end", key)
				}
			}
		})
		for _, j := range jobs {
			at, is := promised[j.key]
			switch {
			case !is:
				continue
			case at.IsZero():
				unknown++
			case j.started.After(at):
				t.Fatalf("%s started at %v, and was promised to start at %v", j.key, j.started.UTC(), at.UTC())
			default:
				known++
			}
			for _, other := range jobs {
				if other.submitted > j.submitted && other.started.Before(j.started) {
					backfilled++
				}
			}
		}
	})
	t.Logf("%d bookings with a known start, %d without; %d jobs passed one", known, unknown, backfilled)
	if known < 50 || unknown < 20 || backfilled < 50 {
		t.Error("the test proves little")
	}
}

// A gang waits while small jobs keep taking what becomes free. With a reservation, it starts.
func TestAGangStartsAgainstAnEndlessStreamOfSmallJobs(t *testing.T) {
	for _, policy := range []*queue.Policy{queue.RoundRobin, queue.Priority, queue.ShortestFirst} {
		var jobs []*playedJob
		for i := range 600 {
			jobs = append(jobs, &playedJob{key: fmt.Sprintf("a/s%03d", i), submitted: time.Duration(i) * time.Minute, runs: 16 * time.Minute, limit: 20 * time.Minute, cpu: 1})
		}
		gang := &playedJob{key: "a/gang", submitted: 30*time.Minute + time.Second, runs: time.Hour, limit: time.Hour, cpu: 16}
		waited := func(after time.Duration) time.Duration {
			all := append(slices.Clone(jobs), gang)
			for _, j := range all {
				j.unit = nil
			}
			play(t, limited("a", 16), tree.Options{}, []scheduler.QueueChanged{{Queue: "a", Policy: policy, ReserveAfter: after}}, all, func(*scheduler.Scheduler, time.Time) {})
			return gang.started.Sub(time.Unix(1_000_000, 0).Add(gang.submitted))
		}
		if got := waited(0); got < 8*time.Hour {
			t.Errorf("%s: without a reservation, the gang waits for %v", policy, got)
		}
		if got := waited(time.Hour); got < time.Hour || got > time.Hour+20*time.Minute {
			t.Errorf("%s: with a reservation after an hour, the gang waits for %v", policy, got)
		}
	}
}

// However small jobs stream in, a job starts when it has waited for reserveAfter and the older jobs have started, each at
// the latest when those that run have reached their limit.
func TestPropertyNoJobStarvesBesideAStreamOfSmallJobs(t *testing.T) {
	reserved := 0
	rapid.Check(t, func(t *rapid.T) {
		const longest = 20 * time.Minute
		minutes := func(name string, from, to int) time.Duration {
			return time.Duration(rapid.IntRange(from, to).Draw(t, name)) * time.Minute
		}
		var jobs []*playedJob
		for i := range 90 {
			jobs = append(jobs, &playedJob{key: fmt.Sprintf("a/s%02d", i), submitted: time.Duration(i) * time.Minute, runs: minutes("runs", 12, 20), limit: longest, cpu: 1})
		}
		for i := range rapid.IntRange(1, 3).Draw(t, "gangs") {
			jobs = append(jobs, &playedJob{key: fmt.Sprintf("a/gang%d", i), submitted: minutes("submitted", 0, 20), runs: minutes("gang runs", 1, 20), limit: longest,
				cpu: int64(rapid.IntRange(8, 16).Draw(t, "cpu"))})
		}
		after := minutes("reserve", 5, 20)
		policy := rapid.SampledFrom([]*queue.Policy{queue.RoundRobin, queue.Priority, queue.ShortestFirst}).Draw(t, "policy")
		play(t, limited("a", 16), tree.Options{}, []scheduler.QueueChanged{{Queue: "a", Policy: policy, ReserveAfter: after}}, jobs, func(*scheduler.Scheduler, time.Time) {})
		for _, j := range jobs {
			due := time.Unix(1_000_000, 0).Add(j.submitted + after)
			if !j.started.After(due) {
				continue
			}
			if j.cpu > 1 {
				reserved++
			}
			older := 0
			for _, other := range jobs {
				if other != j && other.submitted <= j.submitted && other.started.After(due) {
					older++
				}
			}
			if most := due.Add(time.Duration(older+1)*longest + time.Minute); j.started.After(most) {
				t.Fatalf("%s of %d CPUs, after %d older jobs, started at %v, and not by %v", j.key, j.cpu, older, j.started.UTC(), most.UTC())
			}
		}
	})
	if t.Logf("%d gangs waited for their reservation", reserved); reserved < 50 {
		t.Error("the test proves little")
	}
}

// With guarantees, evictions, priorities and jobs without a limit beside reservations, each job starts, and the core
// keeps its invariants and loses no wake-up.
func TestPropertyEachJobStartsBesideReservations(t *testing.T) {
	evicted := 0
	rapid.Check(t, func(t *rapid.T) {
		root, settings, namespaces := drawQueues(t, func(name string, children ...tree.Node) tree.Node {
			n, min := limited(name, int64(rapid.IntRange(4, 16).Draw(t, name)), children...), 4
			if children == nil {
				min = rapid.IntRange(0, 4).Draw(t, "min")
			}
			n.Min = map[string]resource.Quantity{"cpu": *resource.NewQuantity(int64(min), resource.DecimalSI)}
			return n
		})
		for i := range settings {
			settings[i].Preemption.WithinQueue = rapid.Bool().Draw(t, "preempt")
		}
		jobs := drawJobs(t, namespaces, 40)
		for _, j := range jobs {
			j.priority = int32(rapid.IntRange(0, 2).Draw(t, "priority"))
		}
		play(t, root, tree.Options{Reclaim: rapid.Bool().Draw(t, "reclaim")}, settings, jobs, func(core *scheduler.Scheduler, _ time.Time) {
			if err := core.Check(); err != nil || core.Rescued() > 0 {
				t.Fatalf("%d lost wake-ups, %v", core.Rescued(), err)
			}
		})
		for _, j := range jobs {
			evicted += int(j.unit.Attempts) - 1
		}
	})
	if t.Logf("%d evictions", evicted); evicted < 20 {
		t.Error("the test proves little")
	}
}

// reserving is a world with queues that reserve room after a minute.
func reserving(t *testing.T, root tree.Node, queues ...string) *world {
	w := newWorld(t, scheduler.Options{Policy: queue.Priority}, root)
	for _, q := range queues {
		w.configure(scheduler.QueueChanged{Queue: q, Policy: queue.Priority, ReserveAfter: time.Minute})
	}
	return w
}

// Jobs of a quota and of one below it do not wait for each other.
func TestReservationsOfAQuotaAndOneBelowItDoNotBlockEachOther(t *testing.T) {
	dept := limited("dept", 4, limited("a", 4))
	dept.Namespaces = []string{"d"}
	w := reserving(t, tree.Node{Name: "root", Children: []tree.Node{dept}}, "root-dept", "root-dept-a")
	w.enqueue("a/runs", cpu("4"))
	w.submit("a/large", cpu("3"))
	w.after(2 * time.Minute)
	w.submit("d/large", cpu("3"))
	w.after(2 * time.Minute)
	w.finish("a/runs")
	w.after(time.Hour)
	expectReleased(t, w, "a/large")
	w.end("a/large")
	expectReleased(t, w, "d/large")
}

// Jobs that are released together cannot take the reserved room.
func TestJobsThatAreReleasedTogetherDoNotDelayAReservation(t *testing.T) {
	w := reserving(t, limited("a", 8), "a")
	w.enqueue("a/runs", cpu("4"))
	w.submit("a/large", cpu("6"))
	w.after(2 * time.Minute)
	w.submit("a/s1", cpu("2"))
	w.submit("a/s2", cpu("2"))
	w.settle()
	expectReleased(t, w, "a/runs", "a/s1")
	w.end("a/runs")
	expectReleased(t, w, "a/large", "a/s1")
}

// What ends for one reservation does not also end for another.
func TestAJobFitsBesideEachReservation(t *testing.T) {
	w := reserving(t, tree.Node{Name: "root", Children: []tree.Node{limited("a", 4), limited("b", 4)}}, "root-a", "root-b")
	w.submit("a/x", cpu("3"), maxTime(time.Hour))
	w.submit("b/y", cpu("3"), maxTime(2*time.Hour))
	w.settle()
	w.submit("a/large", cpu("4"))
	w.submit("b/large", cpu("4"))
	w.after(2 * time.Minute)
	w.enqueue("a/late", cpu("1"))
	expectReleased(t, w, "a/x", "b/y")
}

// The limit of a job that waits for admission checks has not started to run.
func TestAJobWithChecksDoesNotPassAReservationByItsLimit(t *testing.T) {
	w := reserving(t, limited("a", 8))
	w.addCheck("x", 0)
	w.configure(scheduler.QueueChanged{Queue: "a", Policy: queue.Priority, ReserveAfter: time.Minute, Checks: "x"})
	w.enqueue("a/runs", cpu("4"), maxTime(time.Hour))
	w.decide("a/runs", "x", scheduler.Ready, "")
	w.settle()
	expectReleased(t, w, "a/runs")
	w.submit("a/large", cpu("8"))
	w.after(2 * time.Minute)
	w.enqueue("a/short", cpu("4"), maxTime(30*time.Minute))
	if phase := w.units["a/short"].Phase; phase != scheduler.Waiting {
		t.Errorf("the phase is %d", phase)
	}
}

// An elastic job does not grow into the reserved room.
func TestAnElasticJobDoesNotGrowIntoAReservation(t *testing.T) {
	w := reserving(t, limited("a", 8), "a")
	w.enqueue("a/runs", cpu("4"), maxTime(time.Hour))
	w.submit("a/large", cpu("6"))
	w.after(2 * time.Minute)
	w.enqueue("a/elastic", cpu("4"), w.elastic(1, 4))
	expectPods(t, w, "a/elastic", 2)
}

// Growth has the submission time of its job, so it would get a reservation at once.
func TestGrowthGetsNoReservation(t *testing.T) {
	w := reserving(t, limited("a", 8), "a")
	w.enqueue("a/runs", cpu("4"))
	w.submit("a/grown", cpu("6"), w.grows("a/runs"))
	w.after(2 * time.Minute)
	w.enqueue("a/small", cpu("3"))
	expectReleased(t, w, "a/runs", "a/small")
}

// A reservation can use what the jobs of a removed quota free.
func TestAReservationAwaitsTheJobsOfARemovedQuota(t *testing.T) {
	w := reserving(t, limited("root", 8, limited("a", 8), limited("b", 8)), "root-a")
	w.enqueue("b/runs", cpu("4"))
	w.plant(limited("root", 8, limited("a", 8)))
	w.submit("a/large", cpu("8"))
	w.after(2 * time.Minute)
	w.enqueue("a/small", cpu("1"))
	expectReleased(t, w, "b/runs")
}

// A job that is activated later has an earlier submission.
func TestAReservationStaysWithItsJobWhenTheTreeChanges(t *testing.T) {
	w := reserving(t, limited("a", 8), "a")
	w.submit("a/runs", cpu("8"))
	w.submit("a/older", cpu("8"), deactivate)
	w.settle()
	w.now = w.now.Add(time.Second)
	w.submit("a/large", cpu("8"))
	w.after(2 * time.Minute)
	w.enqueue("a/small", cpu("1"))
	w.change("a/older", activate)
	for _, when := range []string{"before", "after"} {
		if starts := w.core.Bookings(); len(starts) != 1 || !slices.Contains(slices.Collect(maps.Keys(starts)), "a/large") {
			t.Fatalf("%s the change, room is reserved for %v", when, starts)
		}
		w.plant(w.root)
		w.settle()
	}
}

// Below a shared limit, the job that has waited longest gets the reservation, no matter in which queue.
func TestTheOldestJobBelowALimitGetsTheReservation(t *testing.T) {
	settings := []scheduler.QueueChanged{{Queue: "root-a", Policy: queue.Priority, ReserveAfter: 2 * time.Minute}, {Queue: "root-b", Policy: queue.Priority, ReserveAfter: 2 * time.Minute}}
	oldest := &playedJob{key: "b/large", submitted: time.Minute, runs: time.Hour, cpu: 4}
	jobs := []*playedJob{{key: "a/runs", runs: time.Hour, cpu: 4}, oldest}
	for i := range 10 {
		jobs = append(jobs, &playedJob{key: fmt.Sprint("a/u", i), submitted: time.Minute + time.Duration(i+1)*time.Second, runs: time.Hour, cpu: 4})
	}
	play(t, limited("root", 4, limited("a", 4), limited("b", 4)), tree.Options{}, settings, jobs, func(*scheduler.Scheduler, time.Time) {})
	if at := oldest.started.Sub(time.Unix(1_000_000, 0)); at > time.Hour {
		t.Errorf("it starts after %v", at)
	}
}

// A job that can never start gets no reservation.
func TestAJobThatCannotStartGetsNoReservation(t *testing.T) {
	w := reserving(t, limited("root", 8, limited("a", 8)), "root-a")
	w.core.Apply(w.now, scheduler.PodChanged{Pod: pods.Pod{Namespace: "a", UID: "outside", Stray: true, Requests: resources.Vector{{ID: w.names.ID("cpu"), Value: 1000}}}})
	w.enqueue("a/runs", cpu("4"))
	w.submit("a/never", cpu("8"))
	w.after(time.Second)
	w.submit("a/large", cpu("6"))
	w.after(2 * time.Minute)
	w.enqueue("a/small", cpu("2"))
	expectReleased(t, w, "a/runs")
}

// The pods that a deleted job leaves behind end sometime.
func TestAReservationAwaitsThePodsOfADeletedJob(t *testing.T) {
	w := reserving(t, limited("a", 8), "a")
	w.enqueue("a/runs", cpu("4"))
	w.core.Apply(w.now, scheduler.PodChanged{Pod: w.podOf("a/runs", "left", 4000)})
	w.submit("a/large", cpu("8"))
	w.after(2 * time.Minute)
	w.delete("a/runs")
	w.after(2 * time.Minute)
	w.enqueue("a/small", cpu("1"))
	expectReleased(t, w)
}

// besideAReservation returns a world with queue root-b beside a reservation of root-a, which waits for a/runs to end.
func besideAReservation(t *testing.T) *world {
	w := reserving(t, limited("root", 8, limited("a", 8), limited("b", 8)), "root-a")
	w.enqueue("a/runs", cpu("4"), maxTime(time.Hour))
	w.submit("a/large", cpu("8"))
	w.after(2 * time.Minute)
	return w
}

// In a queue without reservations, a waiting job is tried again when its limit is lowered so that it ends in time.
func TestAJobPassesAReservationWhenItsLimitIsLowered(t *testing.T) {
	w := besideAReservation(t)
	w.enqueue("b/late", cpu("4"), maxTime(59*time.Minute))
	expectReleased(t, w, "a/runs")
	w.change("b/late", maxTime(57*time.Minute)) // with the same limit
	expectReleased(t, w, "a/runs", "b/late")
}

// A reservation starts earlier or later when the limit of a running job changes.
func TestAReservationFollowsTheLimitsOfRunningJobs(t *testing.T) {
	for _, c := range []struct {
		limit, ofLate time.Duration
		released      []string
	}{
		{10 * time.Minute, 30 * time.Minute, []string{"a/runs"}},
		{2 * time.Hour, 90 * time.Minute, []string{"a/runs", "b/late"}},
	} {
		w := besideAReservation(t)
		w.enqueue("b/long", cpu("4"))
		w.change("a/runs", maxTime(c.limit))
		w.enqueue("b/late", cpu("4"), maxTime(c.ofLate))
		expectReleased(t, w, c.released...)
	}
}

// What is left of a job that has ended can stay longer than its limit. The charge of a job without requests does not change.
func TestAReservationDoesNotCountOnTheLimitOfAJobThatHasEnded(t *testing.T) {
	w := reserving(t, limited("a", 8), "a")
	w.enqueue("a/runs", nil, maxTime(time.Hour))
	w.pod(w.podOf("a/runs", "left", 4000))
	w.submit("a/large", cpu("8"))
	w.after(2 * time.Minute)
	w.enqueue("a/long", cpu("4"))
	w.write("a/runs", func(u *scheduler.Unit) { u.Phase, u.Over = scheduler.Running, true })
	w.submit("a/late", cpu("4"), maxTime(30*time.Minute))
	w.settle()
	expectReleased(t, w, "a/runs")
}

// Its limit is no promise if its owner raises those of running jobs.
func TestAJobDoesNotPassAReservationByALimitThatItsOwnerMayRaise(t *testing.T) {
	w := reserving(t, limited("a", 8), "a")
	w.submit("a/runs", cpu("4"), maxTime(time.Hour))
	w.submit("a/raised", cpu("1"), maxTime(time.Hour))
	w.settle()
	w.submit("a/large", cpu("8"))
	w.after(2 * time.Minute)
	w.change("a/raised", maxTime(2*time.Hour))
	w.enqueue("a/late", cpu("3"), maxTime(30*time.Minute)) // counts as 150 minutes
	expectReleased(t, w, "a/raised", "a/runs")
	w.enqueue("a/short", cpu("3"), maxTime(10*time.Minute))
	expectReleased(t, w, "a/raised", "a/runs", "a/short")
}

// In a queue without reservations, a job also passes an equal one of the same queue that would end too late.
func TestAJobPassesAReservationAndAnEqualJobThatWouldEndLate(t *testing.T) {
	w := besideAReservation(t)
	w.enqueue("b/long", cpu("4"))
	w.enqueue("b/short", cpu("4"), maxTime(10*time.Minute))
	expectReleased(t, w, "a/runs", "b/short")
}

// Jobs that are admitted in one round and do not delay a reservation do not each cause it to be planned again.
func TestJobsThatPassAReservationCostTheSameHoweverManyRun(t *testing.T) {
	const running = 2000
	names, now := resources.NewNames(), time.Unix(1_000_000, 0)
	backend, _, err := tree.New(names, limited("a", running+40), tree.Options{})
	require.NoError(t, err)
	core := scheduler.New(scheduler.Options{})
	core.Apply(now, scheduler.QuotaChanged{Backend: backend})
	core.Apply(now, scheduler.QueueChanged{Queue: "a", Policy: queue.Priority, ReserveAfter: time.Minute})
	core.Apply(now, scheduler.Listed{})
	made := 0
	submit := func(cpu int64, limit time.Duration) {
		made++
		u := scheduler.Unit{Key: fmt.Sprint("a/u", made), Facts: scheduler.Facts{UID: fmt.Sprint(made), Version: 1, Submitted: now.UnixMicro(), MaxSeconds: int32(limit / time.Second),
			Demand: quota.Demand{Preemptible: true, Requests: resources.Vector{{ID: names.ID(quota.JobsResource), Value: 1}}}}}
		if cpu > 0 {
			u.Demand.Requests = append(u.Demand.Requests, resources.Amount{ID: names.ID("cpu"), Value: 1000 * cpu})
		}
		core.Apply(now, scheduler.UnitChanged{Unit: u})
	}
	for range running {
		submit(1, time.Hour)
	}
	core.Next(now)
	submit(running+40, 0)
	now = now.Add(2 * time.Minute)
	core.Next(now)
	start := core.Bookings()
	if len(start) != 1 {
		t.Fatalf("room is reserved for %v", start)
	}
	allocations := testing.AllocsPerRun(1, func() {
		for range 5 {
			submit(1, time.Minute) // ends before
			submit(0, 0)           // fits beside
		}
		if plan, _ := core.Next(now); len(plan) != 10 {
			t.Errorf("%d jobs are released", len(plan))
		}
	})
	if allocations > 5*running {
		t.Errorf("%v allocations", allocations)
	}
	if got := core.Bookings(); !maps.Equal(got, start) {
		t.Errorf("the reservations are %v, and were %v", got, start)
	}
}
