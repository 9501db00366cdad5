package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/test/built"
	"kube-queue.dev/kube-queue/test/require"
)

// root returns the folder of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := built.Root(t.Context())
	require.NoError(t, err)
	return dir
}

// parsed reads the documents of a manifest of the repository.
func parsed[T any](t *testing.T, file string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), file))
	require.NoError(t, err)
	var objects []T
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var object T
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects = append(objects, object)
	}
	return objects
}

// A job that requests more than the quota would wait forever.
func TestAllHasAJobOfEachKindThatFitsInTheQuota(t *testing.T) {
	kinds, err := shownKinds()
	require.NoError(t, err)
	limit := parsed[quotav1beta1.ElasticQuotaTree](t, allQuota)[0].Spec.Root.Children[0].Max
	if len(limit) == 0 {
		t.Fatal("the quota has no limit")
	}
	for _, k := range kinds {
		for name, most := range limit {
			if amount := k.Total[name]; amount.Cmp(most) > 0 || name == corev1.ResourceCPU && amount.IsZero() {
				t.Errorf("%s requests %s of %s %s", k.Name, amount.String(), most.String(), name)
			}
		}
	}
	if len(kinds) < len(registry.All())-1 {
		t.Errorf("only %d kinds are shown", len(kinds))
	}
	jobs := map[jobName]bool{}
	for _, k := range kinds {
		text, err := os.ReadFile(filepath.Join(root(t), manifestOf(k)))
		if err != nil || !strings.Contains(string(text), "kind: "+k.Kind.Kind+"\n") || !strings.Contains(string(text), "name: "+jobOf(k).name+"\n") {
			t.Errorf("%s is not in %s: %v", jobOf(k), manifestOf(k), err)
		}
		jobs[jobOf(k)] = true
	}
	if len(jobs) != len(kinds) {
		t.Errorf("%d kinds have %d names of jobs", len(kinds), len(jobs))
	}
}

func TestAFailedJobEndsTheDemo(t *testing.T) {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	failed := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pi-unit"},
		Spec:   v1alpha1.QueueUnitSpec{ConsumerRef: v1alpha1.ConsumerReference{Kind: "Job", Name: "pi"}},
		Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseFailed}}
	require.NoError(t, store.Add(failed))
	w := &watch{units: store}
	err := w.waitFor(t.Context(), []state{{job: jobName{"default", "pi"}, phase: v1alpha1.PhaseSucceeded}}, func(unit) {})
	if err == nil || !strings.Contains(err.Error(), "Job default/pi failed") {
		t.Errorf("got %v", err)
	}
}
