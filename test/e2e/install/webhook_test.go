package install

import (
	"fmt"
	"strings"
	"testing"
	"time"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

const allKinds = "\nenabledExtensions: [tfjob, pytorchjob, job]\n"

// install installs the chart with --set arguments, and waits until jobs are held.
func (s *stage) install(set ...string) {
	s.t.Helper()
	s.helm("install", s.values(allKinds), append(sets(set), "--create-namespace", "--wait")...)
	s.waitForRollout()
}

func sets(values []string) []string {
	var args []string
	for _, value := range values {
		args = append(args, "--set="+value)
	}
	return args
}

// pytorchJob is held by the annotation alone.
func pytorchJob(name string, runs time.Duration) string {
	return fmt.Sprintf(`apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: %s, annotations: {scheduling.x-k8s.io/suspend: "true"}}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: Never
      template:
        metadata: {annotations: {%s}}
        spec: {containers: [{name: pytorch, image: busybox, resources: {requests: {cpu: "1"}}}]}
---
`, name, harness.PodAnnotations(runs, false))
}

// A webhook holds jobs before Kubernetes 1.36, and on 1.36 if the values of the chart say so.
func TestTheWebhookRefusesMarkedJobsAloneWhileNoProgramRuns(t *testing.T) {
	s := begin(t)
	s.install("holdPolicies.by=webhook")
	s.enter("down")
	s.Tree(`{cpu: "1"}`)
	s.Apply(harness.Job{Name: "running", CPU: "1", Runs: harness.UntilFinished, Marked: true}.String())
	s.WaitForPhase("Job", "running", schedulingv1alpha1.PhaseRunning)
	s.Apply(harness.Job{Name: "held", CPU: "1", Runs: time.Second, Marked: true}.String() + harness.Job{Name: "deleted", CPU: "1", Runs: time.Second, Marked: true}.String())
	s.WaitForUnit("Job", "held")
	s.WaitForUnit("Job", "deleted")
	s.EnsureNamespace("down-managed")
	managed := *s.Env
	managed.Namespace = "down-managed"
	managed.Manage()

	_, err := suite.KubectlWith(t.Context(), invalidTree, "apply", "-f", "-")
	if err == nil {
		t.Error("an invalid tree is accepted although the webhook runs")
	} else {
		t.Log(strings.ReplaceAll(err.Error(), "\n", " "))
		expectWords(t, err.Error(), `admission webhook "elasticquotatree.kube-queue.dev" denied the request`, "the quota tree is invalid", "team")
	}

	s.scale(0)
	// Jobs that do not use kube-queue, and jobs that are already held, are not affected.
	s.Apply(harness.Job{Name: "unmarked", CPU: "100m", Runs: time.Second, Unheld: true}.String())
	s.Patch(harness.Jobs, "unmarked", `{"metadata": {"labels": {"a": "b"}}}`)
	s.waitForPods("unmarked", 1)
	s.Patch(harness.Jobs, "held", `{"metadata": {"labels": {"a": "b"}}}`)
	s.Delete(harness.Jobs, "deleted")
	s.Patch(harness.Jobs, "running", `{"metadata": {"labels": {"a": "b"}}}`)
	for _, refused := range []struct{ namespace, manifest, webhook string }{
		{s.Namespace, harness.Job{Name: "refused", CPU: "1", Runs: time.Second, Marked: true}.String(), "hold-job.kube-queue.dev"},
		{s.Namespace, pytorchJob("refused", time.Second), "hold-pytorchjob.kube-queue.dev"},
		{"down-managed", harness.Job{Name: "refused", CPU: "1", Runs: time.Second, Unheld: true}.String(), "managed-namespace.kube-queue.dev"},
	} {
		_, err := suite.KubectlWith(t.Context(), refused.manifest, "-n", refused.namespace, "create", "-f", "-")
		if err == nil {
			t.Fatalf("%s is created although nothing holds it", refused.manifest)
		}
		t.Log(strings.ReplaceAll(err.Error(), "\n", " "))
		expectWords(t, err.Error(), `failed calling webhook "`+refused.webhook+`"`, "job-extensions-webhook.kube-queue.svc")
	}
	s.scale(2)
	s.waitForRollout()
	s.Apply(harness.Job{Name: "refused", CPU: "1", Runs: time.Second, Marked: true}.String())
	s.Finish(harness.Jobs, "running")
	for _, name := range []string{"running", "held", "refused"} {
		s.WaitForPhase("Job", name, schedulingv1alpha1.PhaseSucceeded)
	}
	s.ExpectFree()
}

// invalidTree has a quota with more min than max.
const invalidTree = `
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: elasticquotatree, namespace: kube-system}
spec: {root: {name: root, children: [{name: team, namespaces: [down], min: {cpu: "2"}, max: {cpu: "1"}}]}}
`

// scale sets the replicas of both programs. If they are 0, it waits until no pod is left.
func (s *stage) scale(replicas int) {
	s.t.Helper()
	for _, name := range programs {
		_, err := suite.Kubectl(s.t.Context(), "-n", clustertest.Namespace, "scale", "deployment/"+name, fmt.Sprintf("--replicas=%d", replicas))
		harness.Must(s.t, err)
	}
	harness.Eventually(s.t, time.Minute, "the programs end", func() (bool, string) {
		out, err := suite.Kubectl(s.t.Context(), "-n", clustertest.Namespace, "get", "pods", "-o", "name")
		harness.Must(s.t, err)
		return replicas > 0 || out == "", out
	})
}

func (s *stage) waitForPods(job string, count int) {
	s.t.Helper()
	harness.Eventually(s.t, time.Minute, job+" has its pods", func() (bool, string) {
		pods := s.Pods(job)
		return len(pods) >= count, fmt.Sprint(len(pods))
	})
}
