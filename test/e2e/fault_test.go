package e2e

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/faultproxy"
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
			killAtWrites(t, c.victim, c.when)
		})
	}
}

// kill is when which program is killed.
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
	// With the Queues of earlier tests the controller would make fewer writes.
	harness.Must(t, l.Queue.SchedulingV1alpha1().Queues(clustertest.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	programs := map[string]*harness.Program{
		harness.Controller: suite.Program(t, harness.Controller),
		harness.Extensions: suite.Program(t, harness.Extensions, "--enabled-extensions=tfjob,job"),
	}
	for name, p := range programs {
		if name != victim {
			p.Start()
		}
	}
	return suite.Execute(t, programs[victim], when, faultproxy.Match{})
}

func killAtWrites(t *testing.T, victim string, when harness.Moment) {
	l := suite.Env(t, "faults")
	executioner := startToKill(t, l, victim, when)
	l.Tree(`{cpu: "4"}`)
	l.Apply(tfjob{name: "one", workers: 2, cpu: "1", runs: 4 * time.Second}.String() +
		tfjob{name: "two", workers: 2, cpu: "1", runs: 4 * time.Second}.String() +
		job{name: "three", cpu: "1", runs: 3 * time.Second}.String() +
		job{name: "four", cpu: "1", runs: time.Second, fails: true}.String())

	executioner.Revive(t, func() bool {
		if !l.Ended("TFJob", "one") || !l.Ended("TFJob", "two") || !l.Ended("Job", "three") || !l.Ended("Job", "four") {
			return false
		}
		// The status of Queue and tree is written last.
		free, _ := l.Free()
		return free || victim != harness.Controller
	})
	t.Logf("%s was killed %d times", victim, executioner.Kills)
	if executioner.Kills < 8 {
		t.Errorf("killed %d times; the story has more writes than that", executioner.Kills)
	}
	for kind, names := range map[string][]string{"TFJob": {"one", "two"}, "Job": {"three"}} {
		for _, name := range names {
			l.WaitForPhase(kind, name, "Succeeded")
		}
	}
	l.WaitForPhase("Job", "four", "Failed")
	l.ExpectFree()
	l.Allowed = []string{"write-budget"} // a write without a response is repeated
}

// Nobody but the two jobs that are needed is evicted, each once, whichever write of an eviction is lost.
// job-extensions is not killed here: it writes the event of an eviction first after each start, and would never get to
// its second write.
func TestTheControllerKilledAtEachWriteOfEvictions(t *testing.T) {
	for _, c := range kills {
		if c.victim == harness.Controller {
			t.Run(c.name, func(t *testing.T) {
				c.onlySomeInTest(t)
				killAtEvictions(t, c.victim, c.when)
			})
		}
	}
}

func killAtEvictions(t *testing.T, victim string, when harness.Moment) {
	l := suite.Env(t, "evictions")
	executioner := startToKill(t, l, victim, when)
	_, err := l.Queue.SchedulingV1alpha1().Queues(clustertest.Namespace).Create(t.Context(), &schedulingv1alpha1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: "root-evictions"},
		Spec: schedulingv1alpha1.QueueSpec{Preemption: &schedulingv1alpha1.QueuePreemption{
			WithinQueue: schedulingv1alpha1.PreemptLowerPriority, MinRunTime: &metav1.Duration{}}},
	}, metav1.CreateOptions{})
	harness.Must(t, err)
	l.TreeOf(`{name: evictions, namespaces: [evictions], max: {cpu: "6"}}`)
	runs := func(name string) bool {
		unit := l.Unit("Job", name)
		return unit != nil && unit.Status.Phase == schedulingv1alpha1.PhaseRunning
	}
	urgent := `scheduling.x-k8s.io/priority: "1000"`
	l.Apply(job{name: "spared", cpu: "2", runs: harness.UntilFinished, annotations: urgent}.String() +
		job{name: "first", cpu: "2", runs: harness.UntilFinished}.String() + job{name: "second", cpu: "2", runs: harness.UntilFinished}.String())
	steps := []struct {
		done func() bool
		then func()
	}{
		{func() bool { return runs("spared") && runs("first") && runs("second") },
			func() {
				l.Apply(job{name: "large", cpu: "4", runs: harness.UntilFinished, annotations: urgent}.String())
			}},
		{func() bool { return runs("large") }, func() { l.Finish(harness.Jobs, "large") }},
		{func() bool { return l.Ended("Job", "large") && runs("first") && runs("second") }, func() {
			for _, name := range []string{"spared", "first", "second"} {
				l.Finish(harness.Jobs, name)
			}
		}},
	}
	executioner.Revive(t, func() bool {
		if len(steps) > 0 {
			if steps[0].done() {
				steps[0].then()
				steps = steps[1:]
			}
			return false
		}
		if !l.Ended("Job", "spared") || !l.Ended("Job", "first") || !l.Ended("Job", "second") {
			return false
		}
		free, _ := l.Free() // the status of the tree is written last
		return free
	})
	t.Logf("%s was killed %d times", victim, executioner.Kills)
	if executioner.Kills < 8 {
		t.Errorf("killed %d times; the story has more writes than that", executioner.Kills)
	}
	for name, attempts := range map[string]int32{"large": 1, "spared": 1, "first": 2, "second": 2} {
		if unit := l.WaitForPhase("Job", name, "Succeeded"); unit.Status.Attempts != attempts {
			t.Errorf("%s was released %d times, want %d", name, unit.Status.Attempts, attempts)
		}
	}
	l.ExpectFree()
	l.Allowed = []string{"write-budget"} // a write without a response is repeated
}
