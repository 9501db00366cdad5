package jobextensions

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/requests"
)

// rules count devices of class gpu.example.com, know the type of one model, and add a sidecar's resources to the pods
// of one namespace.
func rules() requests.Rules {
	return requests.Rules{
		Additional: requests.Additional{sidecars: {
			Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("64Mi")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("128Mi")},
		}},
		Classes: map[string]corev1.ResourceName{"gpu.example.com": "example.com/gpu"},
		Types: map[corev1.ResourceName]requests.Types{
			"example.com/gpu": {Names: map[string]map[string]corev1.ResourceName{"model": {"h100": "gpu/h100"}}},
		},
	}
}

// devices is a claim of this many devices of a class.
func devices(class string, count int64) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, Count: count}},
	}}}
}

func (s *story) createTemplate(name string, claim resourcev1.ResourceClaimSpec) {
	s.Helper()
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claim}}
	_, err := s.core.ResourceV1().ResourceClaimTemplates(s.ns).Create(s.Context(), template, metav1.CreateOptions{})
	s.must(err)
}

func (s *story) deleteTemplate(name string) {
	s.Helper()
	s.must(s.core.ResourceV1().ResourceClaimTemplates(s.ns).Delete(s.Context(), name, metav1.DeleteOptions{}))
}

// requestsDevices waits for a unit that requests this many devices, and this many of the type.
func (s *story) requestsDevices(devices, ofType string) {
	s.Helper()
	want := corev1.ResourceList{"cpu": resource.MustParse("2"), "example.com/gpu": resource.MustParse(devices)}
	if ofType != "" {
		want["gpu/h100"] = resource.MustParse(ofType)
	}
	s.hasUnit("with "+devices+" devices", func(u *v1alpha1.QueueUnit) bool {
		return *u.Spec.Active && equality.Semantic.DeepEqual(u.Spec.Resource, want)
	})
}

// claimingJob has two pods, each with a claim of template "gpus".
const claimingJob = `{spec: {parallelism: 2, completions: 2, template: {spec: {
	resourceClaims: [{name: own, resourceClaimTemplateName: gpus}],
	containers: [{name: main, image: main, resources: {requests: {cpu: 1}, claims: [{name: own}]}}]}}}}`

func TestAJobIsQueuedAgainWhenTheTemplateOfItsClaimIsCreated(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, claimingJob)
	s.saysInvalid(`pod set "main": claim "own": ResourceClaimTemplate "gpus" of API resource.k8s.io/v1 does not exist in the namespace; create it`)
	s.createTemplate("gpus", devices("gpu.example.com", 3))
	s.requestsDevices("6", "")
	s.deleteTemplate("gpus")
	s.hasUnit("says that the template is gone", func(u *v1alpha1.QueueUnit) bool {
		return !*u.Spec.Active && u.Status.Reason == "InvalidRequest"
	})
	s.createTemplate("gpus", devices("other.example.com", 3))
	s.saysInvalid(`pod set "main": claim "own": ResourceClaimTemplate "gpus": request "gpus": devices of DeviceClass "other.example.com" cannot be counted;` +
		` use another class, or ask an administrator to add this one to setting devices.classes`)
	s.deleteTemplate("gpus")
	s.createTemplate("gpus", devices("gpu.example.com", 1))
	s.requestsDevices("2", "")
	s.admit()
	s.becomesSuspended(false)
}

func TestAClaimByNameCountsOnceForAJobAndHasTheTypeOfItsPods(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, claimingJob, `{spec: {template: {spec: {nodeSelector: {model: h100},
		resourceClaims: [{name: own, resourceClaimTemplateName: gpus}, {name: shared, resourceClaimName: all}]}}}}`)
	s.createTemplate("gpus", devices("gpu.example.com", 1))
	s.saysInvalid(`pod set "main": claim "shared": ResourceClaim "all" of API resource.k8s.io/v1 does not exist in the namespace; create it`)
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: devices("gpu.example.com", 5)}
	_, err := s.core.ResourceV1().ResourceClaims(s.ns).Create(t.Context(), claim, metav1.CreateOptions{})
	s.must(err)
	s.requestsDevices("7", "7")
	unit := s.unit()
	own := corev1.ResourceList{"cpu": resource.MustParse("1"), "example.com/gpu": resource.MustParse("1"), "gpu/h100": resource.MustParse("1")}
	if got := unit.Spec.PodSets[0].Requests; !equality.Semantic.DeepEqual(got, own) {
		t.Errorf("a pod requests %v, want %v", got, own)
	}
}

func TestAJobIsQueuedAgainWhenAClassProvidesTheResourceThatItRequests(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, `{spec: {parallelism: 2, completions: 2, template: {spec: {
		containers: [{name: main, image: main, resources: {requests: {cpu: 1}, limits: {vendor.example.com/gpu: 1, deviceclass.resource.kubernetes.io/gpu.example.com: 2}}}]}}}}`)
	s.hasUnit("with both names", func(u *v1alpha1.QueueUnit) bool {
		return equality.Semantic.DeepEqual(u.Spec.Resource, corev1.ResourceList{"cpu": resource.MustParse("2"),
			"vendor.example.com/gpu": resource.MustParse("2"), "example.com/gpu": resource.MustParse("4")})
	})
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.example.com"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: ptr.To("vendor.example.com/gpu")}}
	classes := s.core.ResourceV1().DeviceClasses()
	_, err := classes.Create(t.Context(), class, metav1.CreateOptions{})
	s.must(err)
	s.requestsDevices("6", "")
	s.must(classes.Delete(t.Context(), class.Name, metav1.DeleteOptions{}))
	s.hasUnit("with both names again", func(u *v1alpha1.QueueUnit) bool { return len(u.Spec.Resource) == 3 })
}
