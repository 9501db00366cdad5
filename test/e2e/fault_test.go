package e2e

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/testmode"
)

// A program is killed at each of its writes, before or after it lands, and restarted. The result
// does not change: each job runs once, in order, within the quota, and the quota is free
// afterwards.
func TestProgramsKilledAtEachOfTheirWrites(t *testing.T) {
	for _, c := range kills {
		t.Run(c.name, func(t *testing.T) {
			c.onlySomeInTest(t)
			killAtWrites(t, c)
		})
	}
}

// kill says which program is killed, and when.
type kill struct {
	name, victim string
	when         harness.Moment
}

// onlySomeInTest skips every other case in make test.
func (k kill) onlySomeInTest(t *testing.T) {
	if (k.victim == harness.Controller) == (k.when == harness.BeforeEach) {
		testmode.OnlyInTestAll(t, "the controller is killed after each of its writes in make test, and job-extensions before each of them")
	}
}

var kills = []kill{
	{"controller before each write", harness.Controller, harness.BeforeEach},
	{"controller after each write", harness.Controller, harness.AfterEach},
	{"extensions before each write", harness.Extensions, harness.BeforeEach},
	{"extensions after each write", harness.Extensions, harness.AfterEach},
}

// startToKill starts both programs, and kills one of them at its writes.
func startToKill(t *testing.T, l *harness.Env, victim string, when harness.Moment) *harness.Executioner {
	// With the Queues of earlier tests, the controller would make fewer writes.
	harness.Must(t, l.Queue.SchedulingV1alpha1().Queues(clustertest.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	return suite.Execute(t, victim, when)
}

// act is what a test does once a condition holds.
type act struct {
	when func() bool
	do   func()
}

// ending is the end of a job, and how often it was released.
type ending struct {
	kind, name string
	phase      schedulingv1alpha1.QueueUnitPhase
	releases   int32
}

// revive restarts the victim after each kill, until the acts are done, all jobs have ended and the quota is free. It
// expects at least this many kills: simultaneous writes count as one.
func (k kill) revive(t *testing.T, l *harness.Env, executioner *harness.Executioner, least int, jobs []ending, acts ...act) {
	t.Helper()
	executioner.Revive(t, func() bool {
		if len(acts) > 0 {
			if acts[0].when() {
				acts[0].do()
				acts = acts[1:]
			}
			return false
		}
		if slices.ContainsFunc(jobs, func(j ending) bool { return !l.Ended(j.kind, j.name) }) {
			return false
		}
		free, _ := l.Free() // the status of Queues and the tree is written last
		return free || k.victim != harness.Controller
	})
	t.Logf("%s was killed %d times", k.victim, executioner.Kills)
	if executioner.Kills < least {
		t.Errorf("killed %d times; the story has more writes than that", executioner.Kills)
	}
	for _, j := range jobs {
		if unit := l.WaitForPhase(j.kind, j.name, j.phase); unit.Status.Attempts != j.releases {
			t.Errorf("%s was released %d times, want %d", j.name, unit.Status.Attempts, j.releases)
		}
	}
	l.ExpectFree()
	l.Allowed = []string{"write-budget"} // a write without a response is repeated
}

func killAtWrites(t *testing.T, k kill) {
	l := suite.Env(t, "faults")
	executioner := startToKill(t, l, k.victim, k.when)
	l.Tree(`{cpu: "4"}`)
	l.Apply(harness.TFJob{Name: "one", Servers: 1, Workers: 2, CPU: "1", Runs: 4 * time.Second}.String() +
		harness.TFJob{Name: "two", Servers: 1, Workers: 2, CPU: "1", Runs: 4 * time.Second}.String() +
		harness.Job{Name: "three", CPU: "1", Runs: 3 * time.Second}.String() +
		harness.Job{Name: "four", CPU: "1", Runs: time.Second, Fails: true}.String())

	k.revive(t, l, executioner, 4, []ending{
		{"TFJob", "one", "Succeeded", 1}, {"TFJob", "two", "Succeeded", 1}, {"Job", "three", "Succeeded", 1}, {"Job", "four", "Failed", 1}})
}

// Only the two jobs that are needed are evicted, each once, whichever write of an eviction is lost. job-extensions is
// not killed here: after each start, it first writes the event of an eviction, and would never get to its second
// write.
func TestTheControllerKilledAtEachWriteOfEvictions(t *testing.T) {
	for _, c := range kills {
		if c.victim == harness.Controller {
			t.Run(c.name, func(t *testing.T) {
				c.onlySomeInTest(t)
				killAtEvictions(t, c)
			})
		}
	}
}

func killAtEvictions(t *testing.T, k kill) {
	l := suite.Env(t, "evictions")
	executioner := startToKill(t, l, k.victim, k.when)
	l.CreateQueue("root-evictions", schedulingv1alpha1.QueueSpec{Preemption: &schedulingv1alpha1.QueuePreemption{
		WithinQueue: schedulingv1alpha1.PreemptLowerPriority, MinRunTime: &metav1.Duration{}}})
	l.TreeOf(`{name: evictions, namespaces: [evictions], max: {cpu: "6"}}`)
	runs := func(name string) bool {
		unit := l.Unit("Job", name)
		return unit != nil && unit.Status.Phase == schedulingv1alpha1.PhaseRunning
	}
	urgent := `scheduling.x-k8s.io/priority: "1000"`
	l.Apply(harness.Job{Name: "spared", CPU: "2", Runs: harness.UntilFinished, Annotations: urgent}.String() +
		harness.Job{Name: "first", CPU: "2", Runs: harness.UntilFinished}.String() + harness.Job{Name: "second", CPU: "2", Runs: harness.UntilFinished}.String())
	k.revive(t, l, executioner, 4, []ending{
		{"Job", "large", "Succeeded", 1}, {"Job", "spared", "Succeeded", 1}, {"Job", "first", "Succeeded", 2}, {"Job", "second", "Succeeded", 2},
	},
		act{func() bool { return runs("spared") && runs("first") && runs("second") }, func() {
			l.Apply(harness.Job{Name: "large", CPU: "4", Runs: harness.UntilFinished, Annotations: urgent}.String())
		}},
		act{func() bool { return runs("large") }, func() { l.Finish(harness.Jobs, "large") }},
		act{func() bool { return l.Ended("Job", "large") && runs("first") && runs("second") }, func() {
			for _, name := range []string{"spared", "first", "second"} {
				l.Finish(harness.Jobs, name)
			}
		}})
}
