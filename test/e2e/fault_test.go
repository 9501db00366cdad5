package e2e

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

// A program is killed at each of its writes, before or after it lands, and restarted. The result
// does not change: each job runs once, in order, within the quota, and the quota is free
// afterwards.
func TestProgramsKilledAtEachOfTheirWrites(t *testing.T) {
	for _, c := range []struct {
		name, victim string
		when         moment
	}{
		{"controller before each write", harness.Controller, beforeEach},
		{"controller after each write", harness.Controller, afterEach},
		{"extensions before each write", harness.Extensions, beforeEach},
		{"extensions after each write", harness.Extensions, afterEach},
	} {
		t.Run(c.name, func(t *testing.T) { killAtWrites(t, c.victim, c.when) })
	}
}

func killAtWrites(t *testing.T, victim string, when moment) {
	l := suite.Env(t, "faults")
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
	executioner := execute(t, programs[victim], when)
	l.Tree(`{cpu: "4"}`)
	l.Apply(tfjob{name: "one", workers: 2, cpu: "1", runs: 4 * time.Second}.String() +
		tfjob{name: "two", workers: 2, cpu: "1", runs: 4 * time.Second}.String() +
		job{name: "three", cpu: "1", runs: 3 * time.Second}.String() +
		job{name: "four", cpu: "1", runs: time.Second, fails: true}.String())

	executioner.revive(t, func() bool {
		if !l.Ended("TFJob", "one") || !l.Ended("TFJob", "two") || !l.Ended("Job", "three") || !l.Ended("Job", "four") {
			return false
		}
		// The status of Queue and tree is written last.
		free, _ := l.Free()
		return free || victim != harness.Controller
	})
	t.Logf("%s was killed %d times", victim, executioner.kills)
	if executioner.kills < 8 {
		t.Errorf("killed %d times; the story has more writes than that", executioner.kills)
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
