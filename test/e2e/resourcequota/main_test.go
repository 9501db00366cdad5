// Package resourcequota tests kube-queue with ResourceQuotas, unmodified operators and simulated nodes, on a real
// control plane whose quota controller and admission also enforce them.
package resourcequota

import (
	"fmt"
	"slices"
	"testing"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

// suite is shared by all tests: they run one after another.
var suite *harness.Suite

// enabled are the kinds that these tests use.
const enabled = "tfjob,job,rayjob,sparkapp"

// byResourceQuota is the environment that selects ResourceQuotas.
var byResourceQuota = []string{"QueueGroupPlugin=resourceQuota"}

func TestMain(m *testing.M) {
	harness.Main(m, clustertest.Options{
		Operators:  []string{"training-operator", "kuberay", "spark-operator"},
		PodRunTime: harness.UntilFinished,
		// The nodes are large enough that only quotas limit jobs.
		NodeCPU: "100", NodeMemory: "400Gi", NodeGPUs: 8,
	}, func(s *harness.Suite) {
		suite = s
		// Some tests use the quota tree.
		suite.Audits = append(suite.Audits, audit.Options{ResourceQuota: true})
	})
}

// newEnv returns an Env whose audit check uses ResourceQuotas.
func newEnv(t testing.TB, namespace string) *harness.Env {
	t.Helper()
	l := suite.Env(t, namespace)
	l.Audit.ResourceQuota = true
	return l
}

// runs waits until a job runs with all its pods.
func runs(t testing.TB, l *harness.Env, kind, name string) {
	t.Helper()
	harness.Eventually(t, patience, fmt.Sprintf("%s %s in %s runs with all its pods", kind, name, l.Namespace), func() (bool, string) {
		unit := l.Unit(kind, name)
		if unit == nil {
			return false, "there is no unit"
		}
		_, want := ofUnit(unit)
		pods := l.Pods(name)
		whole := unit.Status.Phase == schedulingv1alpha1.PhaseRunning && len(pods) == want
		return whole, fmt.Sprintf("%s %s: %s; %d pods of %d", unit.Status.Phase, unit.Status.Reason, unit.Status.Message, len(pods), want)
	})
}

// end ends a running job.
func end(l *harness.Env, kind, name string) {
	l.Finish(resources[kind], name)
	l.WaitForPhase(kind, name, schedulingv1alpha1.PhaseSucceeded)
}

// held checks that a job was not released and never had a pod.
func held(t testing.TB, l *harness.Env, kind, name string) {
	t.Helper()
	unit := l.Unit(kind, name)
	if unit == nil || unit.Status.Attempts != 0 || len(l.Pods(name)) > 0 {
		t.Errorf("%s %s in %s is not held: %d pods, unit %v", kind, name, l.Namespace, len(l.Pods(name)), unit)
	}
}

// waitForStatus waits until all quotas of the namespace are in force.
func waitForStatus(t testing.TB, l *harness.Env) {
	t.Helper()
	harness.Eventually(t, patience, "the quotas of "+l.Namespace+" have a status", func() (bool, string) {
		quotas := look(t, l).quotas
		return !slices.ContainsFunc(quotas, behind), "not yet"
	})
}
