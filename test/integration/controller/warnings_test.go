package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// warnsOfTree waits until the tree's condition Valid contains all the texts, and kubectl get shows it in the column
// VALID.
func (s *stage) warnsOfTree(texts ...string) {
	s.Helper()
	s.eventually("the tree has its warnings", func() string {
		out, err := cluster.Kubectl(s.Context(), "get", "elasticquotatree", "tree", "-n", "kube-system", "-o", "wide")
		must(s.T, err)
		for _, text := range append(texts, " True ") {
			if !strings.Contains(out, text) {
				return fmt.Sprintf("it lacks %q:\n%s", text, out)
			}
		}
		return ""
	})
}

func TestATreeThatNamesWhatTheClusterDoesNotHaveGetsWarnings(t *testing.T) {
	s := newStage(t)
	startController(t)
	missing := s.namespace + "-later"
	patch := fmt.Sprintf(`{"spec": {"root": {"children": [
		{"name": "team", "namespaces": [%q], "min": {"cpu": 1}, "max": {"cpu": 4, "nvidia.com/gpus": 8, "kube-queue/maxjobs": 2, "example.com/fpga": 1}}]}}}`, missing)
	_, err := s.trees().Patch(t.Context(), "tree", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
	const gpus, jobs = `did you mean "nvidia.com/gpu"?`, `did you mean "kube-queue/max-jobs"?`
	fpga := `root/team: max: no node of the cluster has resource "example.com/fpga", and no other node of the tree names it`
	namespace := fmt.Sprintf("root/team: namespace %q does not exist", missing)
	s.warnsOfTree(gpus, jobs, fpga, namespace)
	s.eventually("events report all of it", func() string {
		list, err := s.kube.CoreV1().Events("kube-system").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=QuotaTreeWarning,type=Warning"})
		must(t, err)
		said := ""
		for _, e := range list.Items {
			said += e.Message + "\n"
		}
		for _, text := range []string{gpus, jobs, fpga, namespace} {
			if !strings.Contains(said, text) {
				return fmt.Sprintf("they lack %q: %s", text, said)
			}
		}
		return ""
	})

	// A namespace that is created later is known at once.
	_, err = s.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: missing}}, metav1.CreateOptions{})
	must(t, err)
	s.eventually("the warning about the namespace is gone", func() string {
		out, err := cluster.Kubectl(t.Context(), "get", "elasticquotatree", "tree", "-n", "kube-system", "-o", "wide")
		must(t, err)
		if strings.Contains(out, missing) || !strings.Contains(out, gpus) {
			return out
		}
		return ""
	})
}

func TestATreeIsNotWarnedOfWhereTheControllerMayNotReadTheCluster(t *testing.T) {
	s := newStage(t)
	role, err := s.kube.RbacV1().ClusterRoles().Get(t.Context(), "kube-queue-controller", metav1.GetOptions{})
	must(t, err)
	kept := role.Rules[:0:0]
	for _, rule := range role.Rules {
		if text := strings.Join(rule.Resources, " "); text != "namespaces" && text != "nodes" {
			kept = append(kept, rule)
		}
	}
	if len(kept) != len(role.Rules)-2 {
		t.Fatalf("the role has no rules for namespaces and nodes: %v", role.Rules)
	}
	role.Rules = kept
	_, err = s.kube.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{})
	must(t, err)
	t.Cleanup(func() {
		must(t, s.kube.RbacV1().ClusterRoles().Delete(context.Background(), role.Name, metav1.DeleteOptions{}))
		must(t, cluster.Install(context.Background()))
	})
	_, err = s.trees().Patch(t.Context(), "tree", types.MergePatchType, []byte(`{"spec": {"root": {"max": {"cpu": 4, "example.com/fpga": 1}}}}`), metav1.PatchOptions{})
	must(t, err)
	startController(t)
	s.unit("first", `resource: {cpu: 2}`)
	s.becomes("first", "phase", "Dequeued")
	s.used("2")
	s.warnsOfTree("The tree is in force.")
}
