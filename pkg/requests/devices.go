package requests

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// WithClasses returns the rules for containers that request devices of these DeviceClasses through an extended
// resource.
func (r Rules) WithClasses(classes []*resourcev1.DeviceClass) Rules {
	newest := map[corev1.ResourceName]*resourcev1.DeviceClass{}
	for _, class := range classes {
		// A resource whose class is not counted counts as it is requested: device plugins can provide it too.
		if class.Spec.ExtendedResourceName == nil || !r.counts(class.Name) {
			continue
		}
		name := corev1.ResourceName(*class.Spec.ExtendedResourceName)
		if other := newest[name]; other == nil || isNewer(class, other) {
			newest[name] = class
		}
	}
	r.extended = make(map[corev1.ResourceName]string, len(newest))
	for name, class := range newest {
		r.extended[name] = class.Name
	}
	return r
}

// SameNames reports whether containers request devices through the same extended resources with both rules.
func (r Rules) SameNames(other Rules) bool { return maps.Equal(r.extended, other.extended) }

// isNewer reports whether the scheduler prefers the class to another one with the same extended resource.
func isNewer(class, other *resourcev1.DeviceClass) bool {
	if class.CreationTimestamp.Equal(&other.CreationTimestamp) {
		return class.Name < other.Name
	}
	return other.CreationTimestamp.Before(&class.CreationTimestamp)
}

// classOf returns the DeviceClass whose devices a container requests through the resource.
func (r Rules) classOf(name corev1.ResourceName) (class string, is bool) {
	if class, is := strings.CutPrefix(string(name), resourcev1.ResourceDeviceClassPrefix); is {
		return class, true
	}
	class, is = r.extended[name]
	return class, is
}

// named returns the requests of one pod, with devices of DeviceClasses under the names of the resources that they count
// as. Devices that cannot be counted keep their name and cause an error.
//
// It applies to the sums over containers, because the scheduler allocates devices separately for each name: an init
// container shares the devices of other containers only if it requests them by the same name.
func (r Rules) named(list corev1.ResourceList) (corev1.ResourceList, error) {
	var devices []corev1.ResourceName
	for _, name := range sortedKeys(list) {
		if _, is := r.classOf(name); is {
			devices = append(devices, name)
		}
	}
	if len(devices) == 0 {
		return list, nil
	}
	total := list.DeepCopy()
	for _, name := range devices {
		delete(total, name)
	}
	var fault error
	for _, name := range devices {
		requested := list[name]
		if requested.IsZero() {
			continue
		}
		count := requested.DeepCopy()
		count.RoundUp(0)
		class, _ := r.classOf(name)
		counted, err := r.ofDevices(class, count, nil)
		if err != nil {
			fault = cmp.Or(fault, fmt.Errorf("resource %s: %w", name, err))
			if len(counted) == 0 {
				counted = corev1.ResourceList{name: count}
			}
		}
		addUnchecked(total, counted)
	}
	return total, fault
}

// QuotaKey returns the key of a ResourceQuota that kube-queue uses for what the API server counts under the given
// key. The API server counts a device under each name of its class.
func (r Rules) QuotaKey(key string) string {
	class, is := strings.CutSuffix(key, corev1.ResourceClaimsPerClass)
	if !is {
		class = ""
		if requested, prefixed := strings.CutPrefix(key, requestsPrefix); prefixed {
			class, _ = r.classOf(corev1.ResourceName(requested))
		}
	}
	if name := r.Classes[class]; r.mapped(class) && name != "" {
		return requestsPrefix + string(name)
	}
	return key
}

// mapped reports whether the setting mentions the class.
func (r Rules) mapped(class string) bool {
	_, mapped := r.Classes[class]
	return !strings.Contains(class, "/") && (mapped || len(r.capacities(class)) > 0)
}

func unmapped(class string) error {
	return fmt.Errorf("devices of DeviceClass %q cannot be counted; use another class, or ask an administrator to add this one to setting devices.classes", class)
}

// counts reports whether the devices of the class, or any of their capacities, count.
func (r Rules) counts(class string) bool {
	if r.Classes[class] != "" {
		return true
	}
	for _, name := range r.capacities(class) {
		if name != "" {
			return true
		}
	}
	return false
}

// capacities returns the resources that the capacities of the devices of a class count as.
func (r Rules) capacities(class string) map[resourcev1.QualifiedName]corev1.ResourceName {
	names := map[resourcev1.QualifiedName]corev1.ResourceName{}
	for key, name := range r.Classes {
		if capacity, is := strings.CutPrefix(key, class+"/"); is {
			names[resourcev1.QualifiedName(capacity)] = name
		}
	}
	return names
}

// ofDevices returns the resources that devices of a class count as, if this capacity of each is used.
func (r Rules) ofDevices(class string, count resource.Quantity, capacity map[resourcev1.QualifiedName]resource.Quantity) (corev1.ResourceList, error) {
	if !r.mapped(class) {
		return nil, unmapped(class)
	}
	total, err := r.capacity(class, count.Value(), capacity)
	if name := r.Classes[class]; name != "" {
		addUnchecked(total, corev1.ResourceList{name: count})
	}
	return total, err
}

// capacity returns the resources that the capacity of devices counts as. If a request does not say how much it needs,
// the amount is known only after the allocation. The list has all known amounts, even with an error.
func (r Rules) capacity(class string, count int64, requested map[resourcev1.QualifiedName]resource.Quantity) (corev1.ResourceList, error) {
	total, counted := corev1.ResourceList{}, r.capacities(class)
	if len(counted) == 0 {
		return total, nil
	}
	var fault error
	for _, name := range sortedKeys(requested) {
		if _, known := counted[name]; !known {
			fault = fmt.Errorf("capacity %q of DeviceClass %q cannot be counted; do not request it, or ask an administrator to add it to setting devices.classes", name, class)
		}
	}
	for _, name := range sortedKeys(counted) {
		amount, given := requested[name]
		switch {
		case counted[name] == "":
		case !given || amount.Sign() <= 0:
			fault = fmt.Errorf("devices of DeviceClass %q are counted by capacity %q; use a claim that requests more than 0 of it", class, name)
		default:
			// The exponent is unchecked, and arithmetic with a huge one, as in 1e2000000000, never ends.
			each := resource.NewQuantity(resources.UsedValue(string(counted[name]), amount), amount.Format)
			each.Mul(count)
			addUnchecked(total, corev1.ResourceList{counted[name]: *each})
		}
	}
	return total, fault
}
