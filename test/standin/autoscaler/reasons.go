package autoscaler

import (
	provisioningv1 "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
)

// Reasons of the conditions, as the autoscalers write them.
const (
	ReasonAccepted              = "Accepted"
	ReasonCapacityIsFound       = "CapacityIsFound"
	ReasonCapacityIsProvisioned = "CapacityIsProvisioned"
	// ReasonReservationTimeExpired is the reason of BookingExpired=True.
	ReasonReservationTimeExpired = "CapacityReservationTimeExpired"

	// The reasons below are those of autoscalers of cloud providers. The one of kubernetes/autoscaler
	// never sets CapacityRevoked.

	ReasonNotProvisioned  = "NotProvisioned"
	ReasonQuotaExceeded   = "QuotaExceeded"
	ReasonCapacityRevoked = "CapacityRevoked"
)

// foundReason returns the reason of Provisioned=True for a class. A request of the class
// check-capacity only checks the capacity that exists.
func foundReason(class string) string {
	if class == provisioningv1.ProvisioningClassCheckCapacity {
		return ReasonCapacityIsFound
	}
	return ReasonCapacityIsProvisioned
}
