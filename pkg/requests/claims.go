package requests

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// Claims looks up the claims that pods name. It is used only if Rules.Classes is not
// empty.
type Claims interface {
	// ClaimTemplate returns the claim that a ResourceClaimTemplate describes; found is
	// false if the template does not exist.
	ClaimTemplate(namespace, name string) (claim *resourcev1.ResourceClaimSpec, found bool)
	// Claim returns a ResourceClaim; found is false if it does not exist.
	Claim(namespace, name string) (claim *resourcev1.ResourceClaimSpec, found bool)
}

// Devices returns the requests of one pod plus those of its claims and the types of its devices. It returns claims that
// the pod uses by name separately, because other pods of the job may share them.
func (r Rules) Devices(list corev1.ResourceList, spec *corev1.PodSpec, namespace string, claims Claims) (corev1.ResourceList, Shared, error) {
	if err := checkClaims(spec); err != nil {
		return nil, nil, err
	}
	shared := Shared{}
	for i := range spec.ResourceClaims {
		claim := &spec.ResourceClaims[i]
		requested, err := r.claimed(claim, namespace, claims)
		if err != nil {
			return nil, nil, err
		}
		if claim.ResourceClaimName != nil {
			shared[*claim.ResourceClaimName] = r.sharedBy(spec, requested)
			continue
		}
		sum := list.DeepCopy()
		if sum == nil {
			sum = corev1.ResourceList{}
		}
		if err := Add(sum, requested); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", title(claim), err)
		}
		list = sum
	}
	list, err := r.withTypes(list, spec)
	return list, shared, err
}

// checkClaims rejects claims of a pod that the API server rejects.
func checkClaims(spec *corev1.PodSpec) error {
	listed := map[string]bool{}
	for i := range spec.ResourceClaims {
		claim := &spec.ResourceClaims[i]
		switch {
		case listed[claim.Name]:
			return fmt.Errorf("claim %q is listed twice in spec.resourceClaims of the pod; remove one entry", claim.Name)
		case (claim.ResourceClaimName == nil) == (claim.ResourceClaimTemplateName == nil):
			return fmt.Errorf("claim %q in spec.resourceClaims of the pod must set exactly one of resourceClaimTemplateName and resourceClaimName", claim.Name)
		}
		listed[claim.Name] = true
	}
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, claim := range container.Resources.Claims {
			if !listed[claim.Name] {
				return fmt.Errorf("container %q uses claim %q, which is missing in spec.resourceClaims of the pod; add it", container.Name, claim.Name)
			}
		}
	}
	return nil
}

// claimed returns the requests of one claim of a pod, without types.
func (r Rules) claimed(claim *corev1.PodResourceClaim, namespace string, claims Claims) (corev1.ResourceList, error) {
	if r.Uncounted != nil {
		r.Uncounted()
		return nil, nil
	}
	if len(r.Classes) == 0 {
		return nil, fmt.Errorf("%s: devices of claims cannot be counted, because setting devices.classes is empty; ask an administrator to add the DeviceClass of the claim", title(claim))
	}
	var spec *resourcev1.ResourceClaimSpec
	var found bool
	if claim.ResourceClaimName != nil {
		spec, found = claims.Claim(namespace, *claim.ResourceClaimName)
	} else {
		spec, found = claims.ClaimTemplate(namespace, *claim.ResourceClaimTemplateName)
	}
	if !found {
		return nil, fmt.Errorf("%s of API resource.k8s.io/v1 does not exist in the namespace; create it", title(claim))
	}
	total, err := r.ofClaim(spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", title(claim), err)
	}
	return total, nil
}

// title names a claim of a pod and the object that it comes from.
func title(claim *corev1.PodResourceClaim) string {
	if claim.ResourceClaimName != nil {
		return fmt.Sprintf("claim %q: ResourceClaim %q", claim.Name, *claim.ResourceClaimName)
	}
	return fmt.Sprintf("claim %q: ResourceClaimTemplate %q", claim.Name, *claim.ResourceClaimTemplateName)
}

func (r Rules) ofClaim(spec *resourcev1.ResourceClaimSpec) (corev1.ResourceList, error) {
	total := corev1.ResourceList{}
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		one, err := r.ofRequest(request)
		if err == nil {
			err = Add(total, one)
		}
		if err != nil {
			return nil, fmt.Errorf("request %q: %w", request.Name, err)
		}
	}
	return total, nil
}

func (r Rules) ofRequest(request *resourcev1.DeviceRequest) (corev1.ResourceList, error) {
	if (request.Exactly == nil) == (len(request.FirstAvailable) == 0) {
		return nil, errors.New("must set exactly one of exactly and firstAvailable")
	}
	most := corev1.ResourceList{}
	for _, one := range alternativesOf(request) {
		list, err := r.ofAlternative(one)
		switch {
		case err == nil:
			raise(most, list)
		case one.name == "":
			return nil, err
		default:
			return nil, fmt.Errorf("alternative %q: %w", one.name, err)
		}
	}
	return most, nil
}

// alternative is one way to satisfy a request for devices. Its name is empty if it is the only one.
type alternative struct {
	name, class string
	mode        resourcev1.DeviceAllocationMode
	count       int64
	capacity    map[resourcev1.QualifiedName]resource.Quantity
}

// alternativesOf returns the alternatives of a request; none if it is for administrative access, because the devices
// stay available to others.
func alternativesOf(request *resourcev1.DeviceRequest) []alternative {
	requested := func(capacity *resourcev1.CapacityRequirements) map[resourcev1.QualifiedName]resource.Quantity {
		return ptr.Deref(capacity, resourcev1.CapacityRequirements{}).Requests
	}
	if exactly := request.Exactly; exactly != nil {
		if ptr.Deref(exactly.AdminAccess, false) {
			return nil
		}
		return []alternative{{"", exactly.DeviceClassName, exactly.AllocationMode, exactly.Count, requested(exactly.Capacity)}}
	}
	var all []alternative
	for i := range request.FirstAvailable {
		sub := &request.FirstAvailable[i]
		all = append(all, alternative{sub.Name, sub.DeviceClassName, sub.AllocationMode, sub.Count, requested(sub.Capacity)})
	}
	return all
}

// ofAlternative returns the resources that the devices of an alternative count as.
func (r Rules) ofAlternative(a alternative) (corev1.ResourceList, error) {
	switch {
	case !r.mapped(a.class):
		return nil, unmapped(a.class)
	case !r.counts(a.class):
		return nil, nil
	case a.mode == resourcev1.DeviceAllocationModeAll:
		return nil, fmt.Errorf("allocationMode All of DeviceClass %q cannot be counted, because the number of devices depends on the node; set allocationMode ExactCount and a count", a.class)
	case a.mode != "" && a.mode != resourcev1.DeviceAllocationModeExactCount:
		return nil, fmt.Errorf("allocationMode %q of DeviceClass %q is not supported; set allocationMode ExactCount and a count", a.mode, a.class)
	case a.count < 0:
		return nil, fmt.Errorf("the count of DeviceClass %q must be 1 or more, not %d", a.class, a.count)
	}
	return r.ofDevices(a.class, *resource.NewQuantity(max(a.count, 1), resource.DecimalSI), a.capacity) // 0 is unset
}

// Shared are the ResourceClaims that pods of a job use by name, keyed by that name. Each counts once for the job.
type Shared map[string]SharedClaim

// SharedClaim has the requests of a claim.
type SharedClaim struct {
	requests corev1.ResourceList
	// types are those of the requested resources; empty for none.
	types map[corev1.ResourceName]corev1.ResourceName
}

func (r Rules) sharedBy(spec *corev1.PodSpec, requested corev1.ResourceList) SharedClaim {
	claim := SharedClaim{requests: requested, types: map[corev1.ResourceName]corev1.ResourceName{}}
	for name := range requested {
		claim.types[name] = r.typeOf(name, spec)
	}
	return claim
}

// Share adds the claims of one pod to those of the job. If the pods of a claim select different types, its devices have
// the default type.
func (r Rules) Share(job, pod Shared) {
	for name, claim := range pod {
		first, shared := job[name]
		if !shared {
			job[name] = SharedClaim{requests: claim.requests, types: maps.Clone(claim.types)}
			continue
		}
		for resource, kind := range claim.types {
			if first.types[resource] != kind {
				first.types[resource] = r.Types[resource].Default
			}
		}
	}
}

// Requests returns the total requests of all claims, with types.
func (s Shared) Requests() (corev1.ResourceList, error) {
	total := corev1.ResourceList{}
	for _, name := range sortedKeys(s) {
		if err := s[name].addTo(total); err != nil {
			return nil, fmt.Errorf("ResourceClaim %q: %w", name, err)
		}
	}
	return total, nil
}

func (c SharedClaim) addTo(total corev1.ResourceList) error {
	addUnchecked(total, c.requests)
	for name, quantity := range c.requests {
		addType(total, c.types[name], quantity)
	}
	return within(total)
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := slices.AppendSeq(make([]K, 0, len(m)), maps.Keys(m))
	slices.Sort(keys)
	return keys
}
