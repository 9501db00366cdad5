package install

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/require"
)

// Jobs are queued and run while kube-queue is installed, upgraded, rolled back, uninstalled and
// installed again. Each is released once and ends.
func TestNoJobIsLostByUpgradeRollbackAndUninstall(t *testing.T) {
	s := begin(t)
	notes := s.helmOf(firstChart(), "install", s.firstValues(), "--create-namespace", "--wait")
	s.waitForRollout()
	s.enter("default")
	s.expectFirstJob(notes)

	// Some jobs run during all steps, some wait during all steps, and others start and end in
	// between.
	s.Tree(`{cpu: "8"}`)
	var wave strings.Builder
	for number := range jobs {
		switch {
		case number < long:
			wave.WriteString(tfjob(name(number), "1", harness.UntilFinished))
		case number < jobs-large:
			wave.WriteString(tfjob(name(number), "1", 2*time.Second))
		default: // the running jobs leave no quota
			wave.WriteString(tfjob(name(number), "5", 2*time.Second))
		}
	}
	s.Apply(wave.String())
	s.waitForEnded(6)
	// The upgrade takes over edited fields by force.
	s.edit(harness.Controller, `/name: StrictConsistency/{n;s/"false"/"true"/}`)
	s.waitForRollout()
	before := s.startLogs(harness.Controller)
	s.helm("upgrade", s.values(`
controller: {strictPriority: true, extraArgs: ["--oversell-rate=1.1"], replicas: 3}
jobExtensions: {replicas: 1}
enabledExtensions: [tfjob, pytorchjob, job]
`), "--wait", "--force-conflicts")
	s.waitForRollout()
	after := s.startLogs(harness.Controller)
	if len(before) != 2 || len(after) != 3 {
		t.Fatalf("%d pods of the controller before the upgrade, %d after it; want 2 and 3", len(before), len(after))
	}
	for _, line := range before {
		expectWords(t, line, `policy="Priority"`, `oversellRate="1"`)
	}
	for _, line := range after {
		expectWords(t, line, `policy="Block"`, `oversellRate="1.1"`)
	}
	s.expectUnderWay()

	s.helm("rollback", nil, "1", "--wait")
	s.waitForRollout()
	back := s.startLogs(harness.Controller)
	if len(back) != 2 {
		t.Fatalf("%d pods of the controller after the rollback, want 2", len(back))
	}
	for _, line := range back {
		expectWords(t, line, `policy="RoundRobin"`)
	}

	s.expectUnderWay()
	s.helm("uninstall", nil, "--wait")
	s.Allowed = []string{"held-after-end"} // without programs, ended jobs keep their quota
	s.expectKept()
	s.helm("install", s.values(""), "--wait")
	s.waitForRollout()
	s.expectUnderWay()
	for number := range long {
		s.Finish(harness.TFJobs, name(number))
	}
	s.waitForEnded(jobs + 1)
	for number := range jobs {
		unit := s.WaitForPhase("TFJob", name(number), schedulingv1alpha1.PhaseSucceeded)
		if unit.Status.Attempts != 1 {
			t.Errorf("%s was released %d times", unit.Spec.ConsumerRef.Name, unit.Status.Attempts)
		}
	}
	s.expectNoStaleConditions()
	s.ExpectFree()
}

// expectNoStaleConditions checks that units of jobs that ended under this release lack the conditions of release
// 0.1.0 that only repeated the phase.
func (s *stage) expectNoStaleConditions() {
	s.t.Helper()
	for number := range jobs {
		if long <= number && number < jobs-large {
			continue // some of these ended before the upgrade
		}
		unit := s.WaitForUnit("TFJob", name(number))
		for _, condition := range unit.Status.Conditions {
			if condition.Type == "QuotaReserved" || condition.Type == "Admitted" {
				s.t.Errorf("the unit of %s still has condition %s", name(number), condition.Type)
			}
		}
	}
}

// The jobs of the test: long ones run until the test ends them, large ones wait for the end of all
// long ones.
const (
	jobs  = 50
	long  = 4
	large = 2
)

func name(number int) string { return fmt.Sprintf("wave-%d", number) }

// expectUnderWay checks that long jobs run and large ones wait.
func (s *stage) expectUnderWay() {
	s.t.Helper()
	for number := range long {
		s.WaitForPhase("TFJob", name(number), schedulingv1alpha1.PhaseRunning)
	}
	for number := jobs - large; number < jobs; number++ {
		if unit := s.WaitForUnit("TFJob", name(number)); unit.Status.Attempts != 0 {
			s.t.Errorf("%s was released though there is no room: %s", name(number), unit.Status.Phase)
		}
	}
}

// tfjob is the manifest of a TFJob of one worker.
func tfjob(name, cpu string, runs time.Duration) string {
	return harness.TFJob{Name: name, CPU: cpu, Runs: runs}.String()
}

// ended counts the units that have ended.
func (s *stage) ended() int {
	s.t.Helper()
	units, err := s.Queue.SchedulingV1alpha1().QueueUnits(s.Namespace).List(s.t.Context(), metav1.ListOptions{})
	harness.Must(s.t, err)
	ended := 0
	for _, unit := range units.Items {
		if unit.Status.Phase.Ended() {
			ended++
		}
	}
	return ended
}

func (s *stage) waitForEnded(count int) {
	s.t.Helper()
	harness.Eventually(s.t, 3*time.Minute, fmt.Sprintf("%d jobs have ended", count), func() (bool, string) {
		ended := s.ended()
		return ended >= count, fmt.Sprintf("%d have", ended)
	})
}

// expectKept checks that exactly the expected objects remain after an uninstall, including those of
// the first job.
func (s *stage) expectKept() {
	s.t.Helper()
	crds, err := suite.Kubectl(s.t.Context(), "get", "crds", "-o", "name")
	harness.Must(s.t, err)
	expectWords(s.t, crds, "queueunits.scheduling.x-k8s.io", "queues.scheduling.x-k8s.io", "admissionchecks.scheduling.x-k8s.io", "provisioningrequestconfigs.scheduling.x-k8s.io",
		"elasticquotatrees.scheduling.sigs.k8s.io")
	for what, want := range map[string]int{"queueunits": jobs + 1, "tfjobs,jobs.batch": jobs + 1} {
		out, err := suite.Kubectl(s.t.Context(), "-n", s.Namespace, "get", what, "-o", "name")
		harness.Must(s.t, err)
		if got := strings.Count(out, "\n"); got != want {
			s.t.Errorf("%d %s are kept, want %d", got, what, want)
		}
	}
	for _, what := range []string{"elasticquotatrees -n kube-system", "queues -n " + clustertest.Namespace} {
		out, err := suite.Kubectl(s.t.Context(), append([]string{"get", "-o", "name"}, strings.Fields(what)...)...)
		harness.Must(s.t, err)
		if out == "" {
			s.t.Errorf("no %s are kept", what)
		}
	}
	for _, what := range []string{"mutatingadmissionpolicies", "validatingadmissionpolicies", "clusterroles", "clusterrolebindings"} {
		out, err := suite.Kubectl(s.t.Context(), "get", what, "-l", "app.kubernetes.io/part-of=kube-queue", "-o", "name")
		harness.Must(s.t, err)
		if out != "" {
			s.t.Errorf("an uninstall leaves %s", out)
		}
	}
	harness.Eventually(s.t, time.Minute, "no pod of kube-queue is left", func() (bool, string) {
		out, err := suite.Kubectl(s.t.Context(), "-n", clustertest.Namespace, "get", "deployments,pods", "-o", "name")
		harness.Must(s.t, err)
		return out == "", out
	})
}

func expectWords(t *testing.T, text string, words ...string) {
	t.Helper()
	require.Says(t, "the text", text, words...)
}
