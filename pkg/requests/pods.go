package requests

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// NotEnded is the field selector of the pods that have not ended.
const NotEnded = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)

// mostGrace is the longest grace period, in seconds, after which a pod stops counting. The API server accepts longer
// ones, but they overflow there, so that the pod seems to be long gone.
const mostGrace = 1 << 31

// GoneAt returns when a pod that is being deleted stops counting, as in Kubernetes' own quota. It may still exist then
// on a lost node. deleted is its deletionTimestamp, and grace its grace period in seconds. leaves is whether there is
// such a time.
func GoneAt(deleted time.Time, grace *int64) (at time.Time, leaves bool) {
	if deleted.IsZero() || grace == nil || *grace < 0 || *grace > mostGrace {
		return time.Time{}, false
	}
	return deleted.Add(time.Duration(*grace) * time.Second), true
}

// OfPod returns the requests of a real pod without its claims, with the types of its devices. The arithmetic is the
// same as for templates; the API server has already set defaults and overhead in the pod. A container that is being
// resized counts as it does for the scheduler. The phase of the pod makes no difference. Devices that cannot be counted
// keep the name that the pod requests them by.
//
// An amount may be too large for 64 bits.
func (r Rules) OfPod(pod *corev1.Pod) corev1.ResourceList {
	list, _ := r.named(requestsOf(pod))
	return typed(list, func(name corev1.ResourceName) corev1.ResourceName { return r.typeOf(name, &pod.Spec) })
}

func requestsOf(pod *corev1.Pod) corev1.ResourceList {
	return helpers.PodRequests(pod, helpers.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true})
}

// PodDevices describes the requests of a real pod that depend on other objects too: on its claims, or on the
// DeviceClasses that provide extended resources.
type PodDevices struct {
	Namespace string
	claims    []podClaim
	// requests are by the names that the containers use.
	requests corev1.ResourceList
	// types are the types of the devices that the pod has, by resource.
	types map[corev1.ResourceName]corev1.ResourceName
}

// ClaimKeys returns the keys of the claims: namespace/name.
func (d *PodDevices) ClaimKeys() []string {
	keys := make([]string, 0, len(d.claims))
	for _, claim := range d.claims {
		keys = append(keys, d.Namespace+"/"+claim.name)
	}
	return keys
}

// podClaim is a claim that a real pod uses.
type podClaim struct {
	name string
	// shared is whether the pod refers to it by name, so that other pods can use it too. extended is whether the
	// scheduler created it for resources that the containers request.
	shared, extended bool
}

// DevicesOf returns the input of Count for the pod; nil if OfPod is sufficient.
func (r Rules) DevicesOf(pod *corev1.Pod) *PodDevices {
	d := &PodDevices{Namespace: pod.Namespace, claims: claimsOf(pod), requests: requestsOf(pod)}
	fixed := len(r.Classes) == 0 || len(d.claims) == 0 && !slices.ContainsFunc(sortedKeys(d.requests), isDevice)
	if _, unmapped := r.named(d.requests); fixed && unmapped == nil {
		return nil
	}
	for name := range r.Types {
		if kind := r.typeOf(name, &pod.Spec); kind != "" {
			if d.types == nil {
				d.types = map[corev1.ResourceName]corev1.ResourceName{}
			}
			d.types[name] = kind
		}
	}
	return d
}

// claimsOf returns the claims of a pod that have a name.
func claimsOf(pod *corev1.Pod) []podClaim {
	var claims []podClaim
	for i := range pod.Spec.ResourceClaims {
		claim := &pod.Spec.ResourceClaims[i]
		if claim.ResourceClaimName != nil {
			claims = append(claims, podClaim{name: *claim.ResourceClaimName, shared: true})
			continue
		}
		for _, status := range pod.Status.ResourceClaimStatuses {
			if status.Name == claim.Name && status.ResourceClaimName != nil {
				claims = append(claims, podClaim{name: *status.ResourceClaimName})
			}
		}
	}
	if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
		claims = append(claims, podClaim{name: status.ResourceClaimName, extended: true})
	}
	return claims
}

// Claimed has the resources that a real claim counts as: in total, and by capacity alone.
type Claimed struct{ Requests, Capacities corev1.ResourceList }

// SharedDevices are the devices of one resource that a pod has through a claim that it can share with other pods.
type SharedDevices struct {
	// Requests has the type that the pod selects, and Default the default type. Default counts if pods that share
	// the claim select different types; see Share.
	Requests, Default corev1.ResourceList
}

// Count returns the requests of the pod and, by claim and resource, the devices that it can share with other pods, with
// their types. A claim that does not exist yet requests nothing, because the pod cannot run without it. The error
// reports a resource that cannot be counted and therefore keeps its name.
func (r Rules) Count(pod *PodDevices, claimed func(namespace, name string) Claimed) (own corev1.ResourceList, shared map[string]SharedDevices, unmapped error) {
	typeOf := func(name corev1.ResourceName) corev1.ResourceName { return pod.types[name] }
	defaultOf := func(name corev1.ResourceName) corev1.ResourceName { return r.Types[name].Default }
	own, unmapped = r.named(pod.requests)
	own = own.DeepCopy()
	for _, claim := range pod.claims {
		use := claimed(pod.Namespace, claim.name)
		switch {
		case claim.extended: // the devices are already counted in the containers
			addUnchecked(own, use.Capacities)
		case !claim.shared:
			addUnchecked(own, use.Requests)
		default:
			for name, quantity := range use.Requests {
				if shared == nil {
					shared = map[string]SharedDevices{}
				}
				one := corev1.ResourceList{name: quantity}
				shared[claim.name+"/"+string(name)] = SharedDevices{typed(one, typeOf), typed(one, defaultOf)}
			}
		}
	}
	return typed(own, typeOf), shared, unmapped
}

// OfClaim returns the resources that a real claim counts as: its allocated devices with the capacity that they give it,
// or its requests before it is allocated. Devices of a class that is not mapped count under the name that a container
// would request them by. With allocation mode All, the maximum number of devices in a claim counts, as in a
// ResourceQuota.
func (r Rules) OfClaim(claim *resourcev1.ResourceClaim) Claimed {
	total, requested := Claimed{corev1.ResourceList{}, corev1.ResourceList{}}, map[string]alternative{}
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		most := Claimed{corev1.ResourceList{}, corev1.ResourceList{}}
		for _, one := range alternativesOf(request) {
			requested[strings.TrimSuffix(request.Name+"/"+one.name, "/")] = one
			if one.count = max(one.count, 1); one.mode == resourcev1.DeviceAllocationModeAll {
				one.count = resourcev1.AllocationResultsMaxSize
			}
			use := r.uses(one)
			raise(most.Requests, use.Requests)
			raise(most.Capacities, use.Capacities)
		}
		total.add(most)
	}
	if claim.Status.Allocation == nil {
		return total
	}
	total = Claimed{corev1.ResourceList{}, corev1.ResourceList{}}
	for _, device := range claim.Status.Allocation.Devices.Results {
		one, counts := requested[device.Request] // not for administrative access
		if !counts {
			continue
		}
		if one.count = 1; len(device.ConsumedCapacity) > 0 {
			one.capacity = device.ConsumedCapacity
		}
		total.add(r.uses(one))
	}
	return total
}

func (c Claimed) add(more Claimed) {
	addUnchecked(c.Requests, more.Requests)
	addUnchecked(c.Capacities, more.Capacities)
}

// uses returns the resources that the devices of an existing claim count as. Unknown capacity is left out.
func (r Rules) uses(a alternative) Claimed {
	count := *resource.NewQuantity(a.count, resource.DecimalSI)
	if !r.mapped(a.class) {
		return Claimed{Requests: corev1.ResourceList{corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix + a.class): count}}
	}
	all, _ := r.ofDevices(a.class, count, a.capacity)
	capacities, _ := r.capacity(a.class, a.count, a.capacity)
	return Claimed{all, capacities}
}
