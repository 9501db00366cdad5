package main

import (
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/require"
	"kube-queue.dev/kube-queue/test/testmode"
)

// These tests check counts only, because durations depend on the machine.

// onlyInTestAll skips the measurements whose rig TestRunUnits tests.
func onlyInTestAll(t *testing.T) {
	testmode.OnlyInTestAll(t, "it tests a measurement, and TestRunUnits tests the rig that all measurements share")
}

// startRig starts a rig for a test. Its logs are kept if the test fails.
func startRig(t *testing.T, options rig.Options) *rig.Rig {
	t.Helper()
	r, err := rig.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the logs are in %s", r.Cluster.Data)
		}
		require.NoError(t, r.Close(t.Failed()))
	})
	return r
}

// figures are those of a measurement.
type figures struct {
	*testing.T
	*rig.Report
}

// measured runs a measurement on a rig. It starts one for each part if r is nil.
func measured(t *testing.T, r *rig.Rig, m measurement) figures {
	t.Helper()
	parts, err := m.parts()
	require.NoError(t, err)
	s := &session{Rig: r, progress: io.Discard, figures: rig.NewReport("test")}
	for _, p := range parts {
		if r == nil {
			s.Rig = startRig(t, p.options)
		}
		require.NoError(t, p.run(t.Context(), s))
	}
	require.NoError(t, s.figures.Print(io.Discard))
	return figures{t, s.figures}
}

// between checks that a figure is between two values.
func (f figures) between(section, name string, low, high float64) {
	f.Helper()
	if figure := f.Report.Find(section, name); figure == nil || figure.Value < low || figure.Value > high {
		f.Errorf("%s, %s: %+v, want %v to %v", section, name, figure, low, high)
	}
}

// expect compares a figure other than a duration.
func (f figures) expect(section, name string, want float64) {
	f.Helper()
	f.between(section, name, want, want)
}

// positive checks that figures are above 0.
func (f figures) positive(section string, names ...string) {
	f.Helper()
	for _, name := range names {
		f.between(section, name, math.SmallestNonzeroFloat64, math.Inf(1))
	}
}

func TestRunUnits(t *testing.T) {
	r := startRig(t, apiOnly(false))
	t.Run("each unit of a stream is released and ended once", func(t *testing.T) {
		f := measured(t, r, &unitsRun{name: "smoke", stretch: 1})
		for name, want := range map[string]float64{"units": 200, "released": 200, "ended": 200} {
			f.expect("in all", name, want)
		}
		f.positive("in all", "wall", "rate", "useful work")
		f.expect("wait from create to release", "measured", 200)
		f.positive("wait from create to release", "p50", "p90", "p99", "max")
		const writes = "writes of a unit"
		f.between(writes, "kube-queue, on jobs, units and events", 1, 2) // a unit that waits long gets a reason
		f.expect(writes, "perf-player: create queueunits.scheduling.x-k8s.io", 1)
		f.expect(writes, "perf-player: patch queueunits.scheduling.x-k8s.io/status", 1)
		f.positive("processor time", "kube-apiserver", "etcd", rig.Controller, rig.Tool)
		f.positive("memory", "kube-apiserver", "etcd", rig.Controller, rig.Tool)
	})
	t.Run("the units of a backlog are released up to its quota", func(t *testing.T) {
		f := measured(t, r, &unitsRun{name: "smoke-backlog", stretch: 1})
		f.expect("waiting", "units", 120)
		f.positive("waiting", "created, each with a reason, after", "controller, memory")
		f.between("waiting", "controller, idle", 0, 2)
		f.expect("room is made", "released", 60)
		f.positive("room is made", "rate")
		const killed = "controller is killed, room is made and it starts"
		f.expect(killed, "released", 12)
		f.positive(killed, "first release after")
	})
}

func TestJobsCompleteInEachQueue(t *testing.T) {
	onlyInTestAll(t)
	const labelled = "label:perf.kube-queue.dev/queue=yes"
	// A queue that releases each job immediately.
	const with = `while sleep 0.1; do
	  kubectl patch jobs --namespace=perf-jobs --patch='{"spec":{"suspend":false}}' $(kubectl get jobs --namespace=perf-jobs \
	    --selector=perf.kube-queue.dev/queue=yes --output=jsonpath='{.items[?(@.spec.suspend==true)].metadata.name}')
	done`
	j := newJobs(t, "--jobs=30", "--run-time=100ms", "--compare", "--queue="+labelled, "--queue=kube-queue", "--with="+with)
	f := measured(t, nil, j)
	for _, queue := range []string{noQueue, labelled, kubeQueue} {
		f.expect(queue, "jobs", 30)
		f.positive(queue, "completions")
		f.positive(queue+": memory", "kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler", "kwok", "perf")
		f.expect(queue+": API writes a job", "perf: create jobs.batch", 1)
		if queue != noQueue {
			f.positive(queue, "completions, of those without a queue")
			f.expect(queue+": create to release", "measured", 30)
		}
	}
	// A job may cost five writes, six if it ran long, and eight if it waited. On a slow machine it
	// may wait.
	const writes = "kube-queue: API writes a job"
	f.between(writes, "kube-queue, on jobs, units and events", 5, 8)
	f.expect(writes, "job-extensions: create queueunits.scheduling.x-k8s.io", 1)
	f.expect(writes, "job-extensions: patch jobs.batch", 1)
	f.expect(labelled+": API writes a job", "kubectl: patch jobs.batch", 1)
}

// TestRunPods checks what the run itself waits for: that the requests of the pods are charged.
func TestRunPods(t *testing.T) {
	onlyInTestAll(t)
	f := measured(t, nil, &podsRun{pods: 300, changes: 50, idle: time.Second})
	f.expect("cluster", "pods", 300)
	f.expect("cluster", "units", 3)
	f.positive("idle", "memory of the controller")
	f.positive("changes of pods", "memory of the controller")
}

func TestRunReviews(t *testing.T) {
	onlyInTestAll(t)
	f := measured(t, nil, &reviewsRun{units: 300, nodes: 20, rounds: 2, during: 2 * time.Second, rate: 10})
	// 300, plus 20 in each of eight windows and 7 in each of two, rounded up to the same number in each of 18 queues.
	const units = 486
	f.expect("cluster", "units", units)
	f.expect("cluster", "queues", 18)
	f.expect("cluster", "units that hold quota at a time", 36)
	for rate, windows := range map[string]float64{"10 units end in a second": 2, "units end as fast as possible": 1} {
		f.positive("releases, "+rate, "without questions", "with questions", "rate with questions")
		for _, kind := range []string{"QueueUnitReview", "QueueReview", "QuotaReview"} {
			f.positive(kind+", "+rate, "measured", "max", "largest answer")
		}
		for _, name := range []string{"list -A", "tree", "why JOB"} {
			section := fmt.Sprintf("kubectl kube-queue %s, %s", name, rate)
			f.expect(section, "measured", windows) // once in each window with questions
			f.positive(section, "max", "largest answer")
		}
	}
	f.positive("pages in 50 browsers", "rate of releases", "measured", "max")
	f.expect("pages in 50 browsers", "not shown", 0)
	f.between("in the end", "units ended", 1, 8*20+2*7)
	f.between("in the end", "units released", 1, 8*20+2*7+36)
}
