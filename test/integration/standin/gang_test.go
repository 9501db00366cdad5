package standin

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	provisioningv1 "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"

	"kube-queue.dev/kube-queue/test/gangs"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/standin/autoscaler"
)

func (s *scene) gang(pods int) gangs.Gang {
	return gangs.Gang{Name: s.namespace, Namespace: s.namespace, Selector: "gang=train", Pods: pods}
}

func TestAGangRunsAtOnceOnTheNodesOfItsRequest(t *testing.T) {
	s := begin(t)
	gangs.Follow(t, s.client, s.gang(4))
	requests := cpus(8)
	requests["nvidia.com/gpu"] = resource.MustParse("8")
	gpus := worker(map[string]string{"accelerator": "h100"}, requests)

	s.answer(autoscaler.QuotaExceeded("no quota for GPUs in this region"))
	s.request("train", gpus, 4)
	s.waitFor("train", provisioningv1.Accepted, metav1.ConditionTrue, autoscaler.ReasonAccepted)
	s.waitFor("train", provisioningv1.Provisioned, metav1.ConditionFalse, autoscaler.ReasonQuotaExceeded)
	s.waitForNodes(0)

	s.answer(autoscaler.Provision())
	s.waitFor("train", provisioningv1.Provisioned, metav1.ConditionTrue, autoscaler.ReasonCapacityIsProvisioned)
	s.waitForNodes(4)
	s.createPods(gpus, "train-0", "train-1", "train-2", "train-3")
	s.waitForRunning(4)
	used := map[string]bool{}
	for _, pod := range s.pods() {
		used[pod.Spec.NodeName] = true
	}
	for _, node := range s.nodes() {
		if !used[node.Name] || node.Labels["accelerator"] != "h100" {
			t.Errorf("node %s has labels %v and no pod of the gang", node.Name, node.Labels)
		}
	}

	s.deleteRequest("train")
	s.deletePods()
	s.waitForNodes(0)
}

func TestRequestsOfAPoolFollowOneAnother(t *testing.T) {
	s := begin(t)
	s.answer(autoscaler.Provision().Within(&autoscaler.Pool{Limit: cpus(4)}))
	s.request("first", worker(nil, cpus(2)), 2)
	s.waitFor("first", provisioningv1.Provisioned, metav1.ConditionTrue, autoscaler.ReasonCapacityIsProvisioned)
	s.request("second", worker(nil, cpus(2)), 1)
	s.waitFor("second", provisioningv1.Provisioned, metav1.ConditionFalse, autoscaler.ReasonNotProvisioned)
	s.deleteRequest("first")
	s.waitFor("second", provisioningv1.Provisioned, metav1.ConditionTrue, autoscaler.ReasonCapacityIsProvisioned)
	s.waitForNodes(1)
	s.deleteRequest("second")
	s.waitForNodes(0)
}

func TestRevokedCapacityGoesWithItsPods(t *testing.T) {
	s := begin(t)
	pods := worker(map[string]string{"spot": "true"}, cpus(2))
	s.answer(autoscaler.Provision())
	s.request("train", pods, 2)
	s.waitFor("train", provisioningv1.Provisioned, metav1.ConditionTrue, autoscaler.ReasonCapacityIsProvisioned)
	s.createPods(pods, "train-0", "train-1")
	s.waitForRunning(2)
	s.answer(autoscaler.Revoke("the machines are needed elsewhere"))
	s.waitFor("train", provisioningv1.CapacityRevoked, metav1.ConditionTrue, autoscaler.ReasonCapacityRevoked)
	s.waitForNodes(0)
	s.waitForNoPods()
}

func TestAPartlyRunningGangIsFound(t *testing.T) {
	s := begin(t)
	ctx, cancel := context.WithCancel(t.Context())
	follower, stop, err := gangs.Start(ctx, s.client, s.gang(2))
	harness.Must(t, err)
	defer stop()
	defer cancel()

	// The cluster has room for one pod.
	pods := worker(nil, cpus(1))
	s.createPods(pods, "train-0", "train-1")
	s.waitForRunning(1)
	harness.Eventually(t, patience, "a pod of the gang is unschedulable while the other one runs", func() (bool, string) {
		found := rules(t, follower)
		return slices.Equal(found, []gangs.Rule{gangs.Unschedulable, gangs.Incomplete}), join(found)
	})

	s.answer(autoscaler.Provision())
	s.request("late", pods, 1)
	s.waitForRunning(2)
	if found := rules(t, follower); !slices.Equal(found, []gangs.Rule{gangs.Unschedulable, gangs.LateCapacity}) {
		t.Errorf("with a node that came late, the violations are %v", found)
	}
	s.deletePods()
	s.deleteRequest("late")
	s.waitForNodes(0)
}

// rules returns the rules that were violated.
func rules(t *testing.T, follower *gangs.Follower) (found []gangs.Rule) {
	t.Helper()
	violations, err := follower.Check(t.Context())
	harness.Must(t, err)
	for _, v := range violations {
		found = append(found, v.Rule)
	}
	return found
}

func join(rules []gangs.Rule) (text string) {
	for _, rule := range rules {
		text += string(rule) + " "
	}
	return text
}
