package adaptertest

import (
	"fmt"
	"maps"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/test/require"
)

// unknown are fields that are missing from the types of all or some kinds: scheduling of a Job and schedulingGroup of
// a pod ask newer versions of Kubernetes to start pods together.
var unknown = map[string]any{
	"scheduling":      map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{}}},
	"schedulingGroup": map[string]any{"podGroupName": "gang"},
	"unknownField":    []any{map[string]any{"a": "b"}},
}

// tryUnknown suspends and releases a job with fields that its types lack, with and without annotations of its pods,
// and checks that these fields are kept.
func tryUnknown(t *testing.T, adapter framework.Adapter, test Case, podSets []v1alpha1.PodSet) {
	live := object(t, test.Job)
	strew(live)
	test.Job = []byte(text(live))
	want := strewn("", live)
	if len(want) == 0 {
		return // a damaged job without a spec
	}
	for _, suspend := range []bool{true, false} {
		patch, err := decision.SuspendPatch(adapter, test.Job, suspend)
		require.NoError(t, err)
		after, err := jsonpatch.MergePatch(test.Job, []byte(text(patch)))
		require.NoError(t, err)
		compareUnknown(t, fmt.Sprintf("the patch for suspend %v", suspend), object(t, after), want)
	}
	added := decision.PodAnnotations{}
	for _, set := range podSets {
		added[set.Name] = map[string]string{annotation: set.Name}
	}
	now := runtime.DeepCopyJSON(live)
	decision.Annotate(adapter.Kind(), now, added, nil)
	compareUnknown(t, "a release by a JSON Patch", byOperations(t, live, now), want)
}

func compareUnknown(t *testing.T, what string, after map[string]any, want map[string]any) {
	t.Helper()
	if got := strewn("", after); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("after %s the unknown fields are\n%s, not\n%s", what, text(got), text(want))
	}
}

// strew adds the unknown fields to specs of jobs and pods.
func strew(value any) {
	switch value := value.(type) {
	case map[string]any:
		spec, isSpec := value["spec"].(map[string]any)
		_, isPod := value["containers"]
		for _, inner := range value {
			strew(inner)
		}
		if isSpec {
			maps.Copy(spec, unknown)
		}
		if isPod {
			maps.Copy(value, unknown)
		}
	case []any:
		for _, inner := range value {
			strew(inner)
		}
	}
}

// strewn returns the unknown fields by their paths.
func strewn(path string, value any) map[string]any {
	found := map[string]any{}
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if _, is := unknown[name]; is {
				found[path+"/"+name] = inner
				continue
			}
			maps.Copy(found, strewn(path+"/"+name, inner))
		}
	case []any:
		for i, inner := range value {
			maps.Copy(found, strewn(fmt.Sprintf("%s/%d", path, i), inner))
		}
	}
	return found
}
