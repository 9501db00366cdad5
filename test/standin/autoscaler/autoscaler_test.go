package autoscaler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	provisioningv1 "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
	clienttesting "k8s.io/client-go/testing"
)

// Conditions as scene.expect shows them.
const (
	isAccepted    = "Accepted=True Accepted"
	isWaiting     = "Provisioned=False NotProvisioned"
	isProvisioned = "Provisioned=True CapacityIsProvisioned"
	isExpired     = "BookingExpired=True CapacityReservationTimeExpired"
	isRevoked     = "CapacityRevoked=True CapacityRevoked"
)

func TestEachAnswerLeadsThroughTheStepsOfTheRealAutoscaler(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer Answer
		want   []string
		nodes  int
	}{
		{"never", Never(), nil, 0},
		{"not provisioned", NotProvisioned("no capacity"), []string{isAccepted, isWaiting}, 0},
		{"quota exceeded", QuotaExceeded("no quota"), []string{isAccepted, "Provisioned=False QuotaExceeded"}, 0},
		{"fail", Fail("Expired", "too old"), []string{isAccepted, "Failed=True Expired"}, 0},
		{"provision", Provision(), []string{isAccepted, isProvisioned}, 3},
		{"two pods on a node", Provision().PodsOnNode(2), []string{isAccepted, isProvisioned}, 2},
		{"expire", Expire(), []string{isAccepted, isProvisioned, isExpired}, 3},
		{"revoke", Revoke("maintenance"), []string{isAccepted, isProvisioned, isRevoked}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t)
			s.template("worker", nil, "cpu", "1")
			s.request("train", set("worker", 3))
			s.answer(Rule{}, c.answer)
			s.settle()
			s.expect("train", c.want...)
			if got := len(s.allNodes()); got != c.nodes {
				t.Errorf("%d nodes, want %d", got, c.nodes)
			}
		})
	}
}

func TestFinalConditionsAreNeverTakenBack(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, then Answer
		want        []string
	}{
		{"failed stays failed", Fail("Expired", "too old"), Provision(), []string{isAccepted, "Failed=True Expired"}},
		{"provisioned does not fail", Provision(), Fail("Expired", "too old"), []string{isAccepted, isProvisioned}},
		{"provisioned does not wait again", Provision(), NotProvisioned("gone"), []string{isAccepted, isProvisioned}},
		{"expired stays expired", Expire(), Provision(), []string{isAccepted, isProvisioned, isExpired}},
		{"revoked stays revoked", Revoke(""), Provision(), []string{isAccepted, isProvisioned, isRevoked}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t)
			s.template("worker", nil, "cpu", "1")
			s.request("train", set("worker", 1))
			s.answer(Rule{}, c.first)
			s.settle()
			s.answer(Rule{}, c.then)
			s.settle()
			s.expect("train", c.want...)
		})
	}
}

func TestRulesSelectByNamespaceAndNameAndTheLatestWins(t *testing.T) {
	s := begin(t)
	s.template("worker", nil, "cpu", "1")
	s.request("train-a", set("worker", 1))
	s.request("train-b", set("worker", 1))
	s.request("infer", set("worker", 1))
	s.answer(Rule{Namespace: namespace}, NotProvisioned("none"))
	s.answer(Rule{Name: "train-*"}, Fail("OutOfResources", "none"))
	s.answer(Rule{Name: "train-b"}, Provision())
	s.answer(Rule{Namespace: "other"}, Fail("Other", "namespace"))
	s.settle()
	s.expect("train-a", isAccepted, "Failed=True OutOfResources")
	s.expect("train-b", isAccepted, isProvisioned)
	s.expect("infer", isAccepted, isWaiting)
	if err := s.Answer(Rule{Name: "["}, Provision()); err == nil {
		t.Error("a malformed pattern was not refused")
	}
}

func TestARequestIsProvisionedWhenAllItsNodesAreUsable(t *testing.T) {
	s := begin(t)
	s.kubelets = false
	s.template("worker", nil, "cpu", "1")
	s.request("train", set("worker", 2))
	s.answer(Rule{}, Provision())
	s.settle()
	s.expectNodes(map[string]int{"train": 2})
	s.expect("train", isAccepted)
	for i, node := range s.allNodes() {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if i == 0 {
			node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
		}
		_, err := s.kube.CoreV1().Nodes().Update(t.Context(), &node, metav1.UpdateOptions{})
		s.must(err)
	}
	s.settle()
	s.expect("train", isAccepted) // one is tainted
	node := s.allNodes()[0]
	node.Spec.Taints = nil
	_, err := s.kube.CoreV1().Nodes().Update(t.Context(), &node, metav1.UpdateOptions{})
	s.must(err)
	s.settle()
	s.expect("train", isAccepted, isProvisioned)
}

func TestNodesOfADeletedRequestGoWhenTheirPodsHaveEnded(t *testing.T) {
	s := begin(t)
	s.template("worker", nil, "cpu", "1")
	s.request("train", set("worker", 2))
	s.request("other", set("worker", 1))
	s.answer(Rule{}, Provision())
	s.settle()
	s.pod("train-0", "train-uid-trai-0")
	s.deleteRequest("train")
	s.settle()
	s.expectNodes(map[string]int{"train": 1, "other": 1})
	pod, err := s.kube.CoreV1().Pods(namespace).Get(t.Context(), "train-0", metav1.GetOptions{})
	s.must(err)
	pod.Status.Phase = corev1.PodSucceeded
	_, err = s.kube.CoreV1().Pods(namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	s.must(err)
	s.settle()
	s.expectNodes(map[string]int{"other": 1})
}

func TestRevokedNodesGoWithTheirPods(t *testing.T) {
	s := begin(t)
	s.template("worker", nil, "cpu", "1")
	s.request("train", set("worker", 1))
	s.answer(Rule{}, Provision())
	s.settle()
	s.pod("train-0", "train-uid-trai-0")
	s.pod("elsewhere", "node-1")
	conflicts := 1
	s.kube.PrependReactor("update", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		conflicts--
		return conflicts >= 0, nil, apierrors.NewConflict(corev1.Resource("pods"), "train-0", nil)
	})
	s.answer(Rule{}, Revoke("maintenance"))
	s.settle()
	s.expect("train", isAccepted, isProvisioned, isRevoked)
	s.expectMessage("train", provisioningv1.CapacityRevoked, "maintenance")
	s.expectNodes(map[string]int{})
	if s.hasPod("train-0") || !s.hasPod("elsewhere") {
		t.Error("want the pod on the revoked node gone, and the other one not")
	}
}
