package adaptertest

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/test/require"
)

// annotation is a key that is not in any test data.
const annotation = "example.com/annotated"

// tryAnnotations annotates the pods of all pod sets, and removes the annotations again. It checks
// that the templates of the pod sets get them, and that nothing else changes.
func tryAnnotations(t *testing.T, adapter framework.Adapter, test Case, podSets []v1alpha1.PodSet) {
	added := decision.PodAnnotations{}
	for _, set := range podSets {
		added[set.Name] = map[string]string{annotation: set.Name}
	}
	live := object(t, test.Job)
	now := runtime.DeepCopyJSON(live)
	placed, unplaced := decision.Annotate(adapter.Kind(), now, added, nil)
	if len(placed)+len(unplaced) != len(added) {
		t.Errorf("of %v, %v are annotated and %v are not", slices.Collect(maps.Keys(added)), placed, unplaced)
	}
	after := byOperations(t, live, now)
	compareTyped(t, adapter, test, after, placed)
	removed := runtime.DeepCopyJSON(after)
	decision.Annotate(adapter.Kind(), removed, nil, placed)
	compareTyped(t, adapter, test, byOperations(t, after, removed), nil)
}

// compareTyped checks that only the templates of these pod sets are annotated, and that nothing else has changed.
func compareTyped(t *testing.T, adapter framework.Adapter, test Case, after map[string]any, placed decision.PodAnnotations) {
	want, got := typed(t, adapter, object(t, test.Job)), typed(t, adapter, after)
	if want == nil || got == nil {
		return // a part of it cannot be decoded, so it is never released
	}
	if _, related := adapter.(framework.RelatedReader); !related {
		pods, err := adapter.Pods(got)
		if err != nil && test.Invalid == "" {
			t.Fatal(err)
		}
		for _, set := range pods.Sets {
			if set.Template == nil {
				continue
			}
			if value := set.Template.Annotations[annotation]; value != placed[set.Name][annotation] {
				t.Errorf("annotation of pod set %s is %q, not %q", set.Name, value, placed[set.Name][annotation])
			}
		}
	}
	for _, template := range slices.Concat(adapter.Templates(want), adapter.Templates(got)) {
		unannotate(template)
	}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("the job is\n%s, not\n%s", text(got), text(want))
	}
}

func unannotate(template *corev1.PodTemplateSpec) { delete(template.Annotations, annotation) }

func byOperations(t *testing.T, was, now map[string]any) map[string]any {
	return Patched(t, was, decision.OperationsOf(was, now))
}

// Failer is a test, of package testing or rapid.
type Failer interface {
	Helper()
	Fatal(args ...any)
}

// Patched applies a JSON Patch to a JSON object, and returns it as the API server would store it.
func Patched(t Failer, before map[string]any, operations []decision.Operation) map[string]any {
	t.Helper()
	data := []byte(text(before))
	if len(operations) > 0 {
		patch, err := jsonpatch.DecodePatch([]byte(text(operations)))
		if err == nil {
			data, err = patch.Apply(data)
		}
		if err != nil {
			t.Fatal("applying ", text(operations), ": ", err)
		}
	}
	return object(t, data)
}

// typed decodes a job; nil if any part of it cannot be decoded.
func typed(t *testing.T, adapter framework.Adapter, job map[string]any) framework.Object {
	whole, err := decision.ReadAs(adapter, adapter.Kind().Version).Decode([]byte(text(job)))
	require.NoError(t, err)
	if _, fault := decision.Readable(whole); fault != nil {
		return nil
	}
	return whole
}

func object(t Failer, data []byte) map[string]any {
	var object map[string]any
	require.NoError(t, json.Unmarshal(data, &object))
	return object
}
