package devicewatch

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/test/require"
)

var mapped = requests.Rules{Classes: map[string]corev1.ResourceName{"gpu": "example.com/gpu"}}

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), object))
	return object
}

// stored stores a claim as the informer does.
func stored(t *testing.T, w *Watch, text string) any {
	t.Helper()
	object, err := w.slim(read[resourcev1.ResourceClaim](t, text))
	if err == nil && w.claims != nil {
		err = w.claims.Add(object)
	}
	require.NoError(t, err)
	return object
}

func TestPodsAreCountedWithTheClaimsAndTheClassesOfTheMoment(t *testing.T) {
	w := New(mapped)
	w.claims = cache.NewStore(cache.MetaNamespaceKeyFunc)
	renamed := 0
	w.Renamed(func() { renamed++ })
	pod := mapped.DevicesOf(read[corev1.Pod](t, `{metadata: {namespace: a}, spec: {resourceClaims: [{name: x, resourceClaimTemplateName: t}], containers: [{resources: {requests: {vendor.com/gpu: 1}}}]},
		status: {resourceClaimStatuses: [{name: x, resourceClaimName: c}]}}`))
	requests := func(step, want string) {
		t.Helper()
		own, _ := w.Count(pod)
		if list := *read[corev1.ResourceList](t, want); !equality.Semantic.DeepEqual(own, list) {
			t.Errorf("%s: the pod requests %v, want %v", step, own, list)
		}
	}
	class := func(text string) []*resourcev1.DeviceClass {
		return []*resourcev1.DeviceClass{read[resourcev1.DeviceClass](t, text)}
	}
	requests("before anything is known", `{vendor.com/gpu: 1}`)
	stored(t, w, `{metadata: {namespace: b, name: c}, spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, count: 8}}]}}}`)
	requests("with the claim of another namespace", `{vendor.com/gpu: 1}`)
	stored(t, w, `{metadata: {namespace: a, name: c}, spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, count: 2}}]}}}`)
	requests("with its claim", `{vendor.com/gpu: 1, example.com/gpu: 2}`)
	w.apply(class(`{metadata: {name: gpu}, spec: {extendedResourceName: vendor.com/gpu}}`))
	requests("with a class that provides the resource", `{example.com/gpu: 3}`)
	w.apply(class(`{metadata: {name: gpu, labels: {a: b}}, spec: {extendedResourceName: vendor.com/gpu}}`))
	if renamed != 1 {
		t.Errorf("a change was reported %d times", renamed)
	}
	w.apply(nil)
	requests("without the class", `{vendor.com/gpu: 1, example.com/gpu: 2}`)
	if renamed != 2 {
		t.Errorf("two changes were reported %d times", renamed)
	}
}

func TestAClaimIsReportedIfItCountsDifferently(t *testing.T) {
	w := New(mapped)
	const one = `metadata: {namespace: a, name: c, uid: u}, spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, allocationMode: All}}]}}`
	claim := stored(t, w, `{`+one+`}`)
	allocated := stored(t, w, `{`+one+`, status: {allocation: {devices: {results: [{request: a, device: x}]}}}}`)
	reserved := stored(t, w, `{`+one+`, status: {reservedFor: [{name: p, resource: pods, uid: p}], allocation: {devices: {results: [{request: a, device: x}]}}}}`)
	reported := 0
	handler := claimHandler(func(namespace, name string) {
		if reported++; namespace != "a" || name != "c" {
			t.Errorf("reported is %s/%s", namespace, name)
		}
	})
	for _, c := range []struct {
		name string
		does func()
		want int
	}{
		{"it is created", func() { handler.OnAdd(claim, false) }, 1},
		{"it is allocated", func() { handler.OnUpdate(claim, allocated) }, 1},
		{"it is reserved", func() { handler.OnUpdate(allocated, reserved) }, 0},
		{"it is deleted", func() { handler.OnDelete(reserved) }, 1},
		{"it is found to be deleted", func() { handler.OnDelete(cache.DeletedFinalStateUnknown{Obj: reserved}) }, 1},
	} {
		reported = 0
		c.does()
		if reported != c.want {
			t.Errorf("%s: reported %d times, want %d", c.name, reported, c.want)
		}
	}
}

func TestWhatCannotBeCountedIsReportedOnceAndOfManyNamesSome(t *testing.T) {
	w := New(mapped)
	for range 3 {
		for i := range 2 * maxReported {
			pod := read[corev1.Pod](t, fmt.Sprintf(`{metadata: {namespace: a}, spec: {containers: [{resources: {requests: {"deviceclass.resource.kubernetes.io/c%d": 1}}}]}}`, i))
			own, _ := w.Count(mapped.DevicesOf(pod))
			if !equality.Semantic.DeepEqual(own, pod.Spec.Containers[0].Resources.Requests) {
				t.Fatalf("the pod requests %v", own)
			}
		}
	}
	if len(w.reported) != maxReported {
		t.Errorf("%d names were reported", len(w.reported))
	}
}

func TestNothingIsWatchedIfNoClassIsMapped(t *testing.T) {
	if synced, err := New(requests.Rules{}).Start(t.Context(), &rest.Config{}, nil); err != nil || len(synced) > 0 {
		t.Errorf("it waits for %d caches, error %v", len(synced), err)
	}
}
