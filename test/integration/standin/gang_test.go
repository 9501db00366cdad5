package standin

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	provisioningv1 "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"

	"kube-queue.dev/kube-queue/test/gangs"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/standin/autoscaler"
)

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
	follower, stop, err := gangs.Start(ctx, s.client, gangs.Gang{Name: s.namespace, Namespace: s.namespace, Selector: "gang=train", Pods: 2})
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
