package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
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

func TestAFailedJobEndsTheDemo(t *testing.T) {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	failed := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pi-unit"},
		Spec:   v1alpha1.QueueUnitSpec{ConsumerRef: v1alpha1.ConsumerReference{Kind: "Job", Name: "pi"}},
		Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseFailed}}
	require.NoError(t, store.Add(failed))
	w := &watch{units: store}
	require.ErrorSays(t, w.waitFor(t.Context(), []state{{job: jobName{"default", "pi"}, phase: v1alpha1.PhaseSucceeded}}), "Job default/pi failed")
}
