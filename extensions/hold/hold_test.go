package hold_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/hold"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/test/acceptance/kinds"
	"kube-queue.dev/kube-queue/test/require"
)

// normal returns the object with the types of encoding/json.
func normal(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	return adaptertest.Patched(t, object, nil)
}

func annotationsOf(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}

// A job that is held at its creation equals one that job-extensions suspends later.
func TestHoldingAJobChangesWhatItsAdapterChanges(t *testing.T) {
	samples, err := kinds.All()
	require.NoError(t, err)
	for _, sample := range samples {
		t.Run(sample.Name, func(t *testing.T) {
			kind, known := hold.Of(registry.All()).Find(sample.GroupVersionKind)
			if !known || kind.Name != sample.Name {
				t.Fatalf("the adapter of %v is not found", sample.GroupVersionKind)
			}
			object := sample.Unmarked(sample.Version).Object
			object["metadata"].(map[string]any)["annotations"] = map[string]any{"scheduling.x-k8s.io/suspend": "true"}
			data, err := json.Marshal(object)
			require.NoError(t, err)
			merge, err := decision.SuspendPatch(kind.Adapter, data, true)
			require.NoError(t, err)
			want := runtime.DeepCopyJSON(normal(t, object))
			decision.Merge(want, normal(t, merge))
			got := adaptertest.Patched(t, object, hold.Marked(kind.Kind, hold.Request{Create: true, Object: object}))
			if !reflect.DeepEqual(got, want) {
				t.Errorf("held:\n%v\nwant:\n%v", got, want)
			}
		})
	}
}

func TestACopyOfAReleasedJobGetsItsMarkBack(t *testing.T) {
	for _, adapter := range registry.All() {
		object := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"kube-queue/released": "3", "a": "b", "scheduling.x-k8s.io/suspend": "false"}}, "spec": map[string]any{}}
		annotations := annotationsOf(adaptertest.Patched(t, object, hold.Marked(adapter.Kind(), hold.Request{Create: true, Object: object})))
		if annotations["scheduling.x-k8s.io/suspend"] != "true" || annotations["kube-queue/released"] != nil || annotations["a"] != "b" {
			t.Errorf("%s: the annotations of a copy are %v", adapter.Kind().Name, annotations)
		}
		annotations = annotationsOf(adaptertest.Patched(t, object, hold.Marked(adapter.Kind(), hold.Request{Object: object, Old: object})))
		if annotations["scheduling.x-k8s.io/suspend"] != "false" || annotations["kube-queue/released"] != "3" {
			t.Errorf("%s: the annotations after an update are %v", adapter.Kind().Name, annotations)
		}
	}
}

func TestAJobOfAManagedNamespaceGetsTheMark(t *testing.T) {
	kind := adapterOf(t, "job").Kind()
	owned := func(controller any) map[string]any {
		return map[string]any{"metadata": map[string]any{"ownerReferences": []any{map[string]any{"uid": "u", "controller": controller}}}, "spec": map[string]any{}}
	}
	marked := func(value string) map[string]any {
		return map[string]any{"metadata": map[string]any{"annotations": map[string]any{"scheduling.x-k8s.io/suspend": value}}, "spec": map[string]any{}}
	}
	plain := func() map[string]any { return map[string]any{"metadata": map[string]any{}, "spec": map[string]any{}} }
	for name, test := range map[string]struct {
		request hold.Request
		fenced  bool
		want    map[string]any
		held    bool
	}{
		"a new one":                    {hold.Request{Create: true, Object: plain(), Holdable: true}, true, map[string]any{"scheduling.x-k8s.io/suspend": "true"}, true},
		"a new one with another value": {hold.Request{Create: true, Object: marked("false"), Holdable: true}, true, map[string]any{"scheduling.x-k8s.io/suspend": "true"}, true},
		"one that cannot be suspended": {hold.Request{Create: true, Object: plain()}, true, map[string]any{"scheduling.x-k8s.io/suspend": "true"}, false},
		"one that lost its mark":       {hold.Request{Object: plain(), Old: marked("true"), Holdable: true}, true, map[string]any{"scheduling.x-k8s.io/suspend": "true"}, true},
		"one that keeps its mark":      {hold.Request{Object: marked("false"), Old: marked("false"), Holdable: true}, true, map[string]any{"scheduling.x-k8s.io/suspend": "true"}, true},
		// The fence rejects it.
		"one whose mark is changed": {hold.Request{Object: marked("no"), Old: marked("true"), Holdable: true}, true, map[string]any{"scheduling.x-k8s.io/suspend": "no"}, true},
		"one with a controller": {hold.Request{Create: true, Object: owned(true), Holdable: true}, true,
			map[string]any{"scheduling.x-k8s.io/suspend": "true", "kube-queue/not-part-of": "u"}, true},
		"one with an owner":                  {hold.Request{Create: true, Object: owned(false), Holdable: true}, true, map[string]any{"scheduling.x-k8s.io/suspend": "true"}, true},
		"one with a controller, not fenced":  {hold.Request{Create: true, Object: owned(true), Holdable: true}, false, map[string]any{"scheduling.x-k8s.io/suspend": "true"}, true},
		"a copy of one that was released":    {hold.Request{Create: true, Object: map[string]any{"metadata": map[string]any{"annotations": map[string]any{"kube-queue/released": "1"}}}, Holdable: true}, true, map[string]any{"scheduling.x-k8s.io/suspend": "true"}, true},
		"one whose spec and labels are null": {hold.Request{Create: true, Object: map[string]any{"metadata": map[string]any{"labels": nil}, "spec": nil}, Holdable: true}, true, map[string]any{"scheduling.x-k8s.io/suspend": "true"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := adaptertest.Patched(t, test.request.Object, hold.Managed(kind, test.request, test.fenced))
			test.want["kube-queue/managed"] = "true"
			if got := annotationsOf(after); !reflect.DeepEqual(got, test.want) {
				t.Errorf("the annotations are %v, want %v", got, test.want)
			}
			spec, _ := after["spec"].(map[string]any)
			if held := spec["suspend"] == true; held != test.held {
				t.Errorf("held %v, want %v", held, test.held)
			}
		})
	}
}

func TestANewPodWaitsAtTheGate(t *testing.T) {
	const others = `{"metadata":{"labels":{"a":"b"},"annotations":{"scheduling.x-k8s.io/suspend":"true","kube-queue/released":"1"}},"spec":{"schedulingGates":[{"name":"example.com/a"}],"x":1}}`
	for name, test := range map[string]struct {
		pod     string
		managed bool
		want    string
	}{
		"a marked pod": {`{"metadata":{"annotations":{"scheduling.x-k8s.io/suspend":"true"}},"spec":{}}`, false,
			`{"metadata":{"labels":{"kube-queue/gated":"true"},"annotations":{"scheduling.x-k8s.io/suspend":"true"}},"spec":{"schedulingGates":[{"name":"scheduling.x-k8s.io/kube-queue"}]}}`},
		"a copy of a released pod, with another gate": {others, false,
			`{"metadata":{"labels":{"a":"b","kube-queue/gated":"true"},"annotations":{"scheduling.x-k8s.io/suspend":"true"}},"spec":{"schedulingGates":[{"name":"example.com/a"},{"name":"scheduling.x-k8s.io/kube-queue"}],"x":1}}`},
		"a pod of a managed namespace": {`{"metadata":{},"spec":{}}`, true,
			`{"metadata":{"labels":{"kube-queue/gated":"true"},"annotations":{"scheduling.x-k8s.io/suspend":"true","kube-queue/managed":"true"}},"spec":{"schedulingGates":[{"name":"scheduling.x-k8s.io/kube-queue"}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var pod, want map[string]any
			for text, object := range map[string]*map[string]any{test.pod: &pod, test.want: &want} {
				require.NoError(t, json.Unmarshal([]byte(text), object))
			}
			after := adaptertest.Patched(t, pod, hold.Gate(pod, test.managed))
			if !reflect.DeepEqual(after, want) {
				t.Errorf("the pod is %v, want %v", after, want)
			}
			if again := hold.Gate(after, test.managed); len(again) > 0 {
				t.Errorf("gated again by %v", again)
			}
		})
	}
}

func adapterOf(t *testing.T, name string) framework.Adapter {
	t.Helper()
	all, err := registry.Parse(name)
	require.NoError(t, err)
	return all[0]
}

func TestTheVersionSelectsOneOfTwoAdapters(t *testing.T) {
	all := hold.Of(registry.All())
	for version, want := range map[string]string{"v1": "mpiv1", "v2beta1": "mpiv2beta1", "v9": "mpiv1"} {
		kind, known := all.Find(schema.GroupVersionKind{Group: "kubeflow.org", Version: version, Kind: "MPIJob"})
		if !known || kind.Name != want {
			t.Errorf("version %s: %s, want %s", version, kind.Name, want)
		}
	}
	if kind, known := all.Find(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Job"}); known {
		t.Errorf("Job of another group is %s", kind.Name)
	}
}

// A webhook may be called again, or after the policies: it does not change a held job again.
func TestPropertyAnyJobIsHeldOnce(t *testing.T) {
	adapters := registry.All()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(adapters).Draw(t, "adapter").Kind()
		object := map[string]any{"metadata": map[string]any{}, "spec": map[string]any{}}
		draw(t, object, []string{"metadata", "annotations", "scheduling.x-k8s.io/suspend"}, []any{nil, "true", "false"})
		draw(t, object, []string{"metadata", "annotations", "kube-queue/released"}, []any{nil, "1"})
		draw(t, object, kind.SuspendPath, []any{nil, true, false})
		for _, setting := range kind.Sets {
			draw(t, object, setting.Path, []any{nil, "", false, setting.Value, "other"})
		}
		if rapid.Bool().Draw(t, "other fields") {
			draw(t, object, []string{"spec", "template", "x"}, nil)
			draw(t, object, []string{"status", "x"}, nil)
		}
		request := hold.Request{Create: rapid.Bool().Draw(t, "create"), Object: object, Old: object, Holdable: true}
		mutate := hold.Marked
		if rapid.Bool().Draw(t, "managed") {
			mutate = func(kind framework.Kind, request hold.Request) []decision.Operation {
				return hold.Managed(kind, request, true)
			}
		}
		before, _ := json.Marshal(object)
		held := adaptertest.Patched(t, object, mutate(kind, request))
		if after, _ := json.Marshal(object); string(after) != string(before) {
			t.Fatalf("the request was changed: %s, before %s", after, before)
		}
		suspended, _ := held["spec"].(map[string]any)
		for _, name := range kind.SuspendPath[1 : len(kind.SuspendPath)-1] {
			suspended, _ = suspended[name].(map[string]any)
		}
		if suspended["suspend"] != true {
			t.Fatalf("not suspended: %v", held)
		}
		request.Object = held
		if again := mutate(kind, request); len(again) > 0 {
			t.Fatalf("held again by %v: %v", again, held)
		}
		if !reflect.DeepEqual(held["status"], object["status"]) {
			t.Fatalf("the status is %v, before %v", held["status"], object["status"])
		}
	})
}

// draw sets a path to one of the values, or leaves it out. Parents may be null or absent.
func draw(t *rapid.T, object map[string]any, path []string, values []any) {
	last := len(path) - 1
	for _, name := range path[:last] {
		inner, isMap := object[name].(map[string]any)
		if !isMap {
			if _, there := object[name]; there {
				return
			}
			switch rapid.SampledFrom([]string{"map", "null", "absent"}).Draw(t, name) {
			case "absent":
				return
			case "null":
				object[name] = nil
				return
			}
			inner = map[string]any{}
			object[name] = inner
		}
		object = inner
	}
	if value := rapid.SampledFrom(append(values, "absent")).Draw(t, path[last]); value != "absent" {
		object[path[last]] = value
	}
}
