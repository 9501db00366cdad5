package autoscaler

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	provisioningv1 "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
)

// Reasons of the conditions, as the autoscalers write them.
const (
	ReasonAccepted              = "Accepted"
	ReasonCapacityIsProvisioned = "CapacityIsProvisioned"
	// ReasonReservationTimeExpired is the reason of BookingExpired=True.
	ReasonReservationTimeExpired = "CapacityReservationTimeExpired"

	// The reasons below are those of autoscalers of cloud providers. The one of kubernetes/autoscaler
	// never sets CapacityRevoked.

	ReasonNotProvisioned  = "NotProvisioned"
	ReasonQuotaExceeded   = "QuotaExceeded"
	ReasonCapacityRevoked = "CapacityRevoked"
)

// list returns all requests by creation time, then by name.
func (a *Autoscaler) list() ([]*provisioningv1.ProvisioningRequest, error) {
	objects, err := a.requests.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing requests: %w", err)
	}
	var all []*provisioningv1.ProvisioningRequest
	for _, object := range objects {
		request := &provisioningv1.ProvisioningRequest{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.(*unstructured.Unstructured).Object, request); err != nil {
			return nil, fmt.Errorf("reading a request: %w", err)
		}
		all = append(all, request)
	}
	slices.SortFunc(all, func(x, y *provisioningv1.ProvisioningRequest) int {
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return all, nil
}

// write writes a condition, unless the request has it already.
func (a *Autoscaler) write(ctx context.Context, request *provisioningv1.ProvisioningRequest, condition metav1.Condition) error {
	condition.ObservedGeneration = request.Generation
	condition.LastTransitionTime = metav1.Now()
	changed := request.DeepCopy()
	if !meta.SetStatusCondition(&changed.Status.Conditions, condition) {
		return nil
	}
	changed.SetGroupVersionKind(provisioningv1.SchemeGroupVersion.WithKind("ProvisioningRequest"))
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(changed)
	if err != nil {
		return fmt.Errorf("encoding request %s/%s: %w", request.Namespace, request.Name, err)
	}
	_, err = a.dynamic.Resource(Resource).Namespace(request.Namespace).
		UpdateStatus(ctx, &unstructured.Unstructured{Object: object}, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("writing %s of request %s/%s: %w", condition.Type, request.Namespace, request.Name, err)
	}
	return nil
}

// is reports whether a condition of the request is true.
func is(request *provisioningv1.ProvisioningRequest, condition string) bool {
	return meta.IsStatusConditionTrue(request.Status.Conditions, condition)
}
