package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// playedJob is a job that runs for some time after its admission. Its limit is at least that.
type playedJob struct {
	key                    string
	submitted, runs, limit time.Duration
	cpu                    int64
	priority               int32
	unit                   *scheduler.Unit
	started                time.Time
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
			case scheduler.Dequeue:
				u.Phase, u.Attempts, u.DequeuedAt, u.Quota, j.started = scheduler.Running, w.Attempt, now, w.Quota, now
			case scheduler.Evict:
				u.Evicted, u.Stopped, u.Eviction = true, true, scheduler.Eviction{At: now, For: w.EvictedFor}
			case scheduler.Requeue:
				u.Phase, u.Evicted, u.Stopped, u.Eviction = scheduler.Waiting, false, false, scheduler.Eviction{}
				u.Requeues, u.RequeueAt = w.Requeue.Count, w.Requeue.Until
			}
			core.Apply(now, scheduler.Written{Write: w, Version: version, At: now})
			if w.Kind == scheduler.Dequeue || w.Kind == scheduler.Evict {
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
			case j.unit.Phase == scheduler.Running:
				sooner(j.started.Add(j.runs))
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
				byKey[j.key] = j
				apply(j)
			case j.unit != nil && j.unit.Phase == scheduler.Running && !j.started.Add(j.runs).After(now):
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

// If limits are true, a unit with a booking starts when it was first said to start, or earlier.
func TestPropertyAReservationIsNotDelayedByJobsThatCameLater(t *testing.T) {
	booked, backfilled := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		root := limited("root", int64(rapid.IntRange(8, 16).Draw(t, "root")), limited("a", int64(rapid.IntRange(4, 16).Draw(t, "a"))), limited("b", int64(rapid.IntRange(4, 16).Draw(t, "b"))))
		var settings []scheduler.QueueChanged
		for _, q := range []string{"root-a", "root-b"} {
			settings = append(settings, scheduler.QueueChanged{Queue: q, Policy: rapid.SampledFrom(queue.Policies()).Draw(t, "policy"),
				ReserveAfter: time.Duration(rapid.SampledFrom([]int{0, 1, 10, 30}).Draw(t, "reserve")) * time.Minute})
		}
		var jobs []*playedJob
		for i := range rapid.IntRange(5, 60).Draw(t, "jobs") {
			minutes := rapid.IntRange(1, 60).Draw(t, "limit")
			limit := time.Duration(minutes) * time.Minute
			jobs = append(jobs, &playedJob{key: fmt.Sprintf("%s/u%02d", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), i),
				submitted: time.Duration(rapid.IntRange(0, 120).Draw(t, "submitted")) * time.Minute, limit: limit,
				runs: min(limit, time.Duration(rapid.IntRange(1, minutes).Draw(t, "runs"))*time.Minute), cpu: int64(rapid.IntRange(1, 4).Draw(t, "cpu"))})
		}
		promised := map[string]time.Time{}
		play(t, root, tree.Options{}, settings, jobs, func(core *scheduler.Scheduler, now time.Time) {
			for key, at := range core.Bookings() {
				if _, again := promised[key]; !again && !at.IsZero() {
					promised[key] = at
				}
			}
		})
		for _, j := range jobs {
			at, is := promised[j.key]
			if !is {
				continue
			}
			booked++
			if j.started.After(at) {
				t.Fatalf("%s started at %v, and was promised to start at %v", j.key, j.started.UTC(), at.UTC())
			}
			for _, other := range jobs {
				if other.submitted > j.submitted && other.started.Before(j.started) {
					backfilled++
				}
			}
		}
	})
	t.Logf("%d bookings; %d jobs passed one", booked, backfilled)
	if booked < 50 || backfilled < 50 {
		t.Error("the test proves little")
	}
}

// A gang waits while small jobs always take what becomes free. With a reservation, it starts.
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

// Guarantees, evictions, priorities and jobs without a limit beside reservations: each job starts, and the core keeps its
// invariants and loses no wake-up.
func TestPropertyEachJobStartsBesideReservations(t *testing.T) {
	evicted := 0
	rapid.Check(t, func(t *rapid.T) {
		team := func(name string) tree.Node {
			n := limited(name, int64(rapid.IntRange(4, 16).Draw(t, name)))
			n.Min = map[string]resource.Quantity{"cpu": *resource.NewQuantity(int64(rapid.IntRange(0, 4).Draw(t, "min")), resource.DecimalSI)}
			return n
		}
		root := limited("root", int64(rapid.IntRange(8, 16).Draw(t, "root")), team("a"), team("b"))
		var settings []scheduler.QueueChanged
		for _, q := range []string{"root-a", "root-b"} {
			settings = append(settings, scheduler.QueueChanged{Queue: q, Policy: rapid.SampledFrom(queue.Policies()).Draw(t, "policy"),
				Preemption:   scheduler.Preemption{WithinQueue: rapid.Bool().Draw(t, "preempt")},
				ReserveAfter: time.Duration(rapid.SampledFrom([]int{0, 1, 10, 30}).Draw(t, "reserve")) * time.Minute})
		}
		var jobs []*playedJob
		for i := range rapid.IntRange(5, 40).Draw(t, "jobs") {
			j := &playedJob{key: fmt.Sprintf("%s/u%02d", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), i), priority: int32(rapid.IntRange(0, 2).Draw(t, "priority")),
				submitted: time.Duration(rapid.IntRange(0, 120).Draw(t, "submitted")) * time.Minute, runs: time.Duration(rapid.IntRange(1, 30).Draw(t, "runs")) * time.Minute,
				cpu: int64(rapid.IntRange(1, 4).Draw(t, "cpu"))}
			if rapid.IntRange(0, 2).Draw(t, "limited") > 0 {
				j.limit = time.Duration(rapid.IntRange(1, 4).Draw(t, "longer")) * j.runs
			}
			jobs = append(jobs, j)
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
