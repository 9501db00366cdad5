package provisioning

import (
	"strconv"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// RequestKind is the kind of requests, and RequestResource its name in API paths, in the preferred version.
var (
	RequestKind     = schema.GroupVersionKind{Group: "autoscaling.x-k8s.io", Version: "v1", Kind: "ProvisioningRequest"}
	RequestResource = RequestKind.GroupVersion().WithResource("provisioningrequests")
)

// RequestVersions are the versions of the API of requests, the preferred one first. Their fields are the same.
func RequestVersions() []string { return []string{RequestKind.Version, "v1beta1"} }

// Limits of the API of requests.
const (
	mostPodSets       = 32
	mostParameters    = 100
	longestParameter  = 255
	conditionAccepted = "Accepted"
	conditionReady    = "Provisioned"
	conditionFailed   = "Failed"
	conditionExpired  = "BookingExpired"
	conditionRevoked  = "CapacityRevoked"
)

// Request has the fields of a ProvisioningRequest that are used here.
type Request struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              RequestSpec   `json:"spec"`
	Status            RequestStatus `json:"status,omitzero"`
}

// RequestSpec is the immutable part of a request.
type RequestSpec struct {
	PodSets               []RequestPodSet   `json:"podSets"`
	ProvisioningClassName string            `json:"provisioningClassName"`
	Parameters            map[string]string `json:"parameters,omitempty"`
}

// RequestPodSet is a number of equal pods.
type RequestPodSet struct {
	PodTemplateRef TemplateReference `json:"podTemplateRef"`
	Count          int32             `json:"count"`
}

// TemplateReference names a PodTemplate in the namespace of the request.
type TemplateReference struct {
	Name string `json:"name"`
}

// RequestStatus is what the autoscaler reports.
type RequestStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// condition returns a condition of the request; nil if it is not set.
func (r *Request) condition(name string) *metav1.Condition {
	return apimeta.FindStatusCondition(r.Status.Conditions, name)
}

// is returns a condition that is true; nil otherwise.
func (r *Request) is(name string) *metav1.Condition {
	if c := r.condition(name); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}

// Failed reports whether the request has failed, which is final.
func (r *Request) Failed() bool { return r.is(conditionFailed) != nil }

// Check returns the name of the AdmissionCheck that the request belongs to.
func (r *Request) Check() string { return r.Labels[wellknown.CheckLabel] }

// FailedInARow returns how many requests have failed in a row, this one included.
func (r *Request) FailedInARow() int32 {
	if !r.Failed() {
		return 0
	}
	before, err := strconv.ParseInt(r.Annotations[wellknown.FailedRequestsAnnotation], 10, 32)
	if err != nil || before < 0 {
		before = 0
	}
	return int32(before) + 1
}

// FailedBefore returns how many requests have failed in a row for the pods that the unit has now.
func FailedBefore(unit *v1alpha1.QueueUnit, former []*Request) int32 {
	failed := int32(0)
	for _, request := range former {
		if request.Annotations[wellknown.RequestedForAnnotation] == podSetsOf(unit) {
			failed = max(failed, request.FailedInARow())
		}
	}
	return failed
}
