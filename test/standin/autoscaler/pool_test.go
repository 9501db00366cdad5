package autoscaler

import (
	"testing"

	provisioningv1 "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
)

func TestRequestsOfAPoolGetNodesInTheOrderOfCreation(t *testing.T) {
	s := begin(t)
	s.template("worker", nil, "cpu", "2")
	s.request("a", set("worker", 2))
	s.request("b", set("worker", 2))
	s.request("c", set("worker", 1))
	s.answer(Rule{}, Provision().Within(&Pool{Limit: amounts("cpu", "6")}))
	s.settle()
	s.expect("a", isAccepted, isProvisioned)
	s.expect("b", isAccepted, isWaiting)
	s.expect("c", isAccepted, isWaiting)
	s.expectMessage("b", provisioningv1.Provisioned, "cpu: requested 4, used 4 of 6")
	s.expectMessage("c", provisioningv1.Provisioned, "an earlier request waits for capacity")
	s.expectNodes(map[string]int{"a": 2})

	s.deleteRequest("a")
	s.settle()
	s.expect("b", isAccepted, isWaiting, isProvisioned)
	s.expect("c", isAccepted, isWaiting, isProvisioned)
	s.expectNodes(map[string]int{"b": 2, "c": 1})
}

func TestAShareIsHeldUntilTheLastNodeIsGone(t *testing.T) {
	s := begin(t)
	s.template("worker", nil, "cpu", "1")
	s.request("a", set("worker", 2))
	s.answer(Rule{}, Provision().Within(&Pool{Limit: amounts("cpu", "2")}))
	s.settle()
	s.pod("a-0", "a-uid-a-1")
	s.deleteRequest("a")
	s.request("b", set("worker", 1))
	s.settle()
	s.expectNodes(map[string]int{"a": 1})
	s.expect("b", isAccepted, isWaiting)
	s.must(s.kube.Tracker().Delete(podResource, namespace, "a-0"))
	s.settle()
	s.expect("b", isAccepted, isWaiting, isProvisioned)
}
