package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/controller"
	"kube-queue.dev/kube-queue/pkg/controller/backend/elasticquota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
)

// grow adds these groups to the root of the tree. The namespace may use any of them.
func (s *stage) grow(children string) {
	s.Helper()
	var root map[string]any
	must(s.T, yaml.Unmarshal([]byte(`{name: root, max: {cpu: 4}, children: `+children+`}`), &root))
	list, _, err := unstructured.NestedSlice(root, "children")
	must(s.T, err)
	for i := range list {
		list[i].(map[string]any)["namespaces"] = []any{s.namespace}
	}
	must(s.T, unstructured.SetNestedSlice(root, list, "children"))
	must(s.T, retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the controller writes its status
		tree, err := s.trees().Get(s.Context(), "tree", metav1.GetOptions{})
		must(s.T, err)
		must(s.T, unstructured.SetNestedMap(tree.Object, root, "spec", "root"))
		_, err = s.trees().Update(s.Context(), tree, metav1.UpdateOptions{})
		return err
	}))
}

func TestNobodyBorrowsMoreWhileAnOwnerWaits(t *testing.T) {
	s := newStage(t)
	s.grow(`[{name: owner, min: {cpu: 2}}, {name: borrower}]`)
	pausing := func(cfg *controller.Config) {
		cfg.Source = elasticquota.New(tree.Options{PauseBorrowing: true}, elasticquota.PodOptions{})
	}
	stop := startController(t, pausing)
	s.unit("has-borrowed", `quotaName: borrower, resource: {cpu: 3}`)
	s.becomes("has-borrowed", "phase", "Dequeued")
	s.unit("owed", `quotaName: owner, resource: {cpu: 2}`)
	s.becomes("owed", "reason", "QuotaExceeded")
	s.says("owed", "insufficient cpu in quota root: requested 2, used 3 of max 4; quota root/owner is owed 2 of its min 2; borrowed by root/borrower (3)")
	s.unit("more", `quotaName: borrower, resource: {cpu: 1}`)
	s.becomes("more", "reason", "BorrowingPaused")
	s.says("more", "borrowing of cpu is paused in quota root until a waiting job gets its guaranteed quota there: requested 1, used 3 and reserved 2 of max 4")

	// The next process computes the same state.
	stop()
	startController(t, pausing)
	s.used("3")
	s.unit("late", `quotaName: borrower, resource: {cpu: 1}`)
	s.becomes("late", "reason", "BorrowingPaused")
	s.end("has-borrowed")
	s.becomes("owed", "phase", "Dequeued")
	s.becomes("more", "phase", "Dequeued")
	s.becomes("late", "phase", "Dequeued")
	s.used("4")
}

func TestWithoutThatFlagWhateverFitsIsBorrowed(t *testing.T) {
	s := newStage(t)
	s.grow(`[{name: owner, min: {cpu: 2}}, {name: borrower}]`)
	startController(t)
	s.unit("has-borrowed", `quotaName: borrower, resource: {cpu: 3}`)
	s.becomes("has-borrowed", "phase", "Dequeued")
	s.unit("owed", `quotaName: owner, resource: {cpu: 2}`)
	s.becomes("owed", "reason", "QuotaExceeded")
	s.unit("more", `quotaName: borrower, resource: {cpu: 1}`)
	s.becomes("more", "phase", "Dequeued")
}

func TestWhatIsNotPreemptibleStaysWithinMin(t *testing.T) {
	s := newStage(t)
	s.grow(`[{name: team, min: {cpu: 2}, max: {cpu: 4}}]`)
	startController(t)
	s.unit("above", `preemptible: false, resource: {cpu: 3}`)
	s.becomes("above", "reason", "ExceedsMinQuota")
	s.says("above", "can never fit in the guarantee of quota root/team: a non-preemptible job requested 3 cpu, min is 2; request less, make the job preemptible, or ask an administrator to raise the min of the quota")
	s.unit("without", `preemptible: false, resource: {memory: 1Gi}`)
	s.becomes("without", "reason", "ExceedsMinQuota")
	s.says("without", "can never fit in the guarantee of quota root/team: a non-preemptible job requested 1Gi memory, min is 0; request less, make the job preemptible, or ask an administrator to raise the min of the quota")

	s.unit("within", `preemptible: false, resource: {cpu: 2}`)
	s.becomes("within", "phase", "Dequeued")
	s.unit("next", `preemptible: false, resource: {cpu: 1}`)
	s.becomes("next", "reason", "QuotaExceeded")
	s.says("next", "insufficient guaranteed cpu in quota root/team: requested 1, used 2 of min 2 by non-preemptible jobs")
	s.unit("borrows", `resource: {cpu: 2}`)
	s.becomes("borrows", "phase", "Dequeued")

	// Borrowing units do not count in the min of non-preemptible ones.
	s.end("within")
	s.becomes("next", "phase", "Dequeued")
	s.grow(`[{name: team, min: {cpu: 4}, max: {cpu: 8}}]`)
	s.end("borrows")
	s.becomes("above", "phase", "Dequeued")
	s.used("4")
}
