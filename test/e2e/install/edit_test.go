package install

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/podrunner"
)

// Users of ack-kube-queue switch policies, the quota backend and kinds of jobs with kubectl edit. The pods have IPv6
// addresses.
func TestEditedDeploymentsTakeEffect(t *testing.T) {
	s := begin(t, func(o *podrunner.Options) { o.IPv6 = true })
	s.apply(s.template())
	s.waitForRollout()
	s.enter("edited")
	s.Tree(`{cpu: "4"}`)
	s.waitForAnswer()

	s.edit(harness.Controller, `/name: StrictPriority/{n;s/"false"/"true"/}`)
	s.expectInForce(harness.Controller, `policy="Block"`, `quotaBackend="elasticquota"`)
	s.expectPolicy("Block")

	s.edit(harness.Controller, `/name: StrictPriority/{n;s/"true"/"false"/};/name: StrictConsistency/{n;s/"false"/"true"/}`)
	s.expectInForce(harness.Controller, `policy="Priority"`)
	s.expectPolicy("Priority")

	s.edit(harness.Extensions, `s/--enabled-extensions=[a-z,]*/--enabled-extensions=tfjob,job/`)
	s.expectInForce(harness.Extensions, `"job"`, `"tfjob"`)
	s.Apply(harness.Job{Name: "by-spec", CPU: "1"}.String())
	s.WaitForPhase("Job", "by-spec", "Succeeded")

	s.Allowed = []string{"wrong-quota"} // the checker supports only one backend per log
	s.edit(harness.Controller, `/name: QueueGroupPlugin/{n;s/elasticquota/resourcequota/}`)
	s.expectInForce(harness.Controller, `quotaBackend="resourcequota"`)
	s.Apply("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: team}\nspec: {hard: {requests.cpu: \"2\"}}\n")
	s.Apply(harness.Job{Name: "fits", CPU: "2"}.String())
	s.WaitForPhase("Job", "fits", "Succeeded")
	s.Apply(harness.Job{Name: "too-large", CPU: "3"}.String())
	s.WaitForReason("Job", "too-large", "ExceedsMaxQuota")

	// An invalid value is reported in the pod, and the existing pods continue.
	s.edit(harness.Controller, `/name: QueueGroupPlugin/{n;s/resourcequota/quota/}`)
	harness.Eventually(t, time.Minute, "the new pod reports the invalid value", func() (bool, string) {
		var said string
		for _, pod := range s.pods(harness.Controller) {
			text, err := s.runner.Log(pod.Name)
			if err == nil && strings.Contains(text, "unknown quota backend") {
				return strings.Contains(text, "known backends: elasticquota, resourcequota"), text
			}
			said += text
		}
		return false, said
	})
	s.Apply(harness.Job{Name: "meanwhile", CPU: "1"}.String())
	s.WaitForPhase("Job", "meanwhile", "Succeeded")
}

// edit edits a Deployment with kubectl edit, with sed as the editor.
func (s *stage) edit(deployment, script string) {
	s.t.Helper()
	before := s.deployment(deployment).Generation
	cmd := exec.CommandContext(s.t.Context(), suite.KubectlPath, "--kubeconfig="+suite.Kubeconfig,
		"-n", clustertest.Namespace, "edit", "deployment", deployment)
	cmd.Env = append(cmd.Environ(), "KUBE_EDITOR=sed -i -e '"+script+"'")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("kubectl edit: %v\n%s", err, out)
	}
	if s.deployment(deployment).Generation == before {
		s.t.Fatalf("sed %s changes nothing in Deployment %s", script, deployment)
	}
}

// expectInForce waits for the rollout, and checks that the log of each pod has the settings in force.
func (s *stage) expectInForce(program string, words ...string) {
	s.t.Helper()
	s.waitForRollout()
	lines := s.startLogs(program)
	if len(lines) == 0 {
		s.t.Fatalf("no pod of %s has started", program)
	}
	for _, line := range lines {
		expectWords(s.t, line, words...)
	}
}

// expectPolicy waits until the queue of the test has the policy.
func (s *stage) expectPolicy(policy string) {
	s.t.Helper()
	harness.Eventually(s.t, time.Minute, "the queue has policy "+policy, func() (bool, string) {
		out, err := suite.Kubectl(s.t.Context(), "-n", clustertest.Namespace, "get", "queue", "root-team", "-o", "jsonpath={.status.policy}")
		if err != nil {
			return false, err.Error()
		}
		return out == policy, out
	})
}
