package reconciler

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/test/require"
)

func claim(t *testing.T, text string) *resourcev1.ResourceClaim {
	t.Helper()
	read := &resourcev1.ResourceClaim{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), read))
	return read
}

func TestAChangeOfAClaimIsReportedOnlyIfItMayChangeARequest(t *testing.T) {
	one := claim(t, `{metadata: {name: a}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 1}}]}}}`)
	two := claim(t, `{metadata: {name: a}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 2}}]}}}`)
	allocated := one.DeepCopy()
	allocated.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Name: "pod"}}
	ofPod := one.DeepCopy()
	ofPod.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "p", Controller: ptr.To(true)}}
	template := &resourcev1.ResourceClaimTemplate{}
	provides := &resourcev1.DeviceClass{Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: ptr.To("example.com/gpu")}}
	labelled := provides.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}

	reported := 0
	handler := claimHandler(func(metav1.Object) { reported++ })
	for _, c := range []struct {
		name string
		does func()
		want int
	}{
		{"a claim is created", func() { handler.OnAdd(one, false) }, 1},
		{"a claim is allocated", func() { handler.OnUpdate(one, allocated) }, 0},
		{"a claim is replaced by another of its name", func() { handler.OnUpdate(one, two) }, 1},
		{"a claim is deleted", func() { handler.OnDelete(two) }, 1},
		{"a claim is found to be deleted", func() { handler.OnDelete(cache.DeletedFinalStateUnknown{Obj: two}) }, 1},
		{"a claim is created for a pod", func() { handler.OnAdd(ofPod, false) }, 0},
		{"the claim of a pod is deleted", func() { handler.OnDelete(ofPod) }, 0},
		{"a template is created", func() { handler.OnAdd(template, true) }, 1},
		{"a class provides a resource", func() { handler.OnUpdate(&resourcev1.DeviceClass{}, provides) }, 1},
		{"a class gets a label", func() { handler.OnUpdate(provides, labelled) }, 0},
	} {
		reported = 0
		c.does()
		if reported != c.want {
			t.Errorf("%s: reported %d times, want %d", c.name, reported, c.want)
		}
	}
}

func TestAClaimRetainsOnlyWhatItsDevicesCountAs(t *testing.T) {
	given := claim(t, `
metadata: {name: a, annotations: {x: z}, managedFields: [{manager: m}]}
spec:
  devices:
    requests:
    - {name: r, exactly: {deviceClassName: gpu, count: 2, allocationMode: ExactCount, adminAccess: true, selectors: [{cel: {expression: "true"}}], tolerations: [{key: k}], capacity: {requests: {memory: 1Gi}}}}
    - {name: s, firstAvailable: [{name: f, deviceClassName: npu, count: 3, selectors: [{cel: {expression: "true"}}], tolerations: [{key: k}], capacity: {requests: {memory: 1Gi}}}]}
    constraints: [{requests: [r]}]
    config: [{requests: [r]}]
status: {reservedFor: [{name: p, resource: pods, uid: u}]}
`)
	want := claim(t, `
metadata: {name: a}
spec:
  devices:
    requests:
    - {name: r, exactly: {deviceClassName: gpu, count: 2, allocationMode: ExactCount, adminAccess: true, capacity: {requests: {memory: 1Gi}}}}
    - {name: s, firstAvailable: [{name: f, deviceClassName: npu, count: 3, capacity: {requests: {memory: 1Gi}}}]}
`)
	template := &resourcev1.ResourceClaimTemplate{Spec: resourcev1.ResourceClaimTemplateSpec{Spec: *given.Spec.DeepCopy()}}
	for _, obj := range []any{given, template} {
		_, err := slimClaim(obj)
		require.NoError(t, err)
	}
	if !equality.Semantic.DeepEqual(given, want) {
		t.Errorf("the claim is %v, want %v", given, want)
	}
	if !equality.Semantic.DeepEqual(template.Spec.Spec, want.Spec) {
		t.Errorf("the claim of the template is %v, want %v", template.Spec.Spec, want.Spec)
	}
}

func TestClaimsThatAreNotWatchedAreNotFound(t *testing.T) {
	none := &listedCluster{}
	if _, found := none.ClaimTemplate("ns", "a"); found {
		t.Error("a template was found")
	}
	if _, found := none.Claim("ns", "a"); found {
		t.Error("a claim was found")
	}
}
