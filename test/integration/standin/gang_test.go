package standin

import (
	"context"
	"slices"
	"testing"

	"kube-queue.dev/kube-queue/test/gangs"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/standin/autoscaler"
)

func TestAPartlyRunningGangIsFound(t *testing.T) {
	s := begin(t)
	ctx, cancel := context.WithCancel(t.Context())
	follower, stop, err := gangs.Start(ctx, s.client, gangs.Gang{Name: s.namespace, Namespace: s.namespace, Selector: "gang=train", Pods: 2})
	harness.Must(t, err)
	defer stop()
	defer cancel()

	// The cluster has room for one pod.
	pods := worker()
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
