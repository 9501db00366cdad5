package controller

import (
	"context"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"kube-queue.dev/kube-queue/pkg/controller"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/integration/controller/seats"
)

// seatsOf sets the number of seats of the namespace. An empty number removes the label.
func (s *stage) seatsOf(number string) {
	s.Helper()
	label := "null"
	if number != "" {
		label = fmt.Sprintf("%q", number)
	}
	patch := fmt.Sprintf(`{"metadata": {"labels": {%q: %s}}}`, seats.Label, label)
	_, err := s.kube.CoreV1().Namespaces().Patch(s.Context(), s.namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(s.T, err)
}

// mayReadNamespaces grants the controller the right to watch namespaces, which only this backend needs.
func mayReadNamespaces(t *testing.T, kube kubernetes.Interface) {
	t.Helper()
	roles, bindings := kube.RbacV1().ClusterRoles(), kube.RbacV1().ClusterRoleBindings()
	_, err := roles.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "seats"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "seats"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "seats"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: clustertest.Namespace, Name: "kube-queue-controller"}}}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		must(t, bindings.Delete(context.Background(), "seats", metav1.DeleteOptions{}))
		must(t, roles.Delete(context.Background(), "seats", metav1.DeleteOptions{}))
	})
}

// The controller runs a backend from outside. The backend decides what a unit uses, whether it fits, and why not.
func TestABackendIsOnePackage(t *testing.T) {
	s := newStage(t)
	mayReadNamespaces(t, s.kube)
	bySeats := func(cfg *controller.Config) { cfg.Source = &seats.Source{} }
	stop := startController(t, bySeats)
	s.unit("first", `resource: {cpu: 100}`)
	s.becomes("first", "reason", "NoQuota")
	s.says("first", "namespace "+s.namespace+" has no seats; give it the label example.com/seats")

	s.seatsOf("0")
	s.becomes("first", "reason", "ExceedsMaxQuota")
	s.seatsOf("1")
	s.becomes("first", "phase", "Dequeued")
	s.becomes("first", "quota", s.namespace)
	s.unit("second", `priority: 0`)
	s.becomes("second", "reason", "MaxJobs")
	s.seatsOf("2")
	s.becomes("second", "phase", "Dequeued")
	s.unit("third", `priority: 0`)
	s.becomes("third", "reason", "MaxJobs")

	// The next process charges the used seats, and reuses a freed seat.
	stop()
	startController(t, bySeats)
	s.end("first")
	s.becomes("third", "phase", "Dequeued")

	// Removing the seats does not affect units that hold one.
	s.seatsOf("")
	s.unit("fourth", `priority: 0`)
	s.becomes("fourth", "reason", "NoQuota")
	for _, name := range []string{"second", "third"} {
		if phase := s.status(name, "phase"); phase != "Dequeued" {
			t.Errorf("%s is %s", name, phase)
		}
	}
}
