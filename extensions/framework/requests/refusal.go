package requests

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// asker is a container or a pod with what it asks for.
type asker struct {
	who              string
	requests, limits corev1.ResourceList
}

func containersOf(pod *corev1.Pod) []asker {
	var askers []asker
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		askers = append(askers, asker{
			who: fmt.Sprintf("container %q", container.Name), requests: container.Resources.Requests, limits: container.Resources.Limits,
		})
	}
	return askers
}

// wholePod is the pod as LimitRanges see it: without overhead, and of what it asks
// for as a whole only CPU and memory.
func wholePod(pod *corev1.Pod) asker {
	whole := asker{
		who:      "the pod",
		requests: helpers.AggregateContainerRequests(pod, helpers.PodResourcesOptions{}),
		limits:   helpers.AggregateContainerLimits(pod, helpers.PodResourcesOptions{}),
	}
	if pod.Spec.Resources == nil {
		return whole
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if quantity, given := pod.Spec.Resources.Requests[name]; given {
			whole.requests[name] = quantity
		}
		if quantity, given := pod.Spec.Resources.Limits[name]; given {
			whole.limits[name] = quantity
		}
	}
	return whole
}

// consistent checks what defaults may have made impossible: a request above its
// limit, and containers that together go beyond the pod as a whole.
func consistent(pod *corev1.Pod) error {
	askers := containersOf(pod)
	if whole := pod.Spec.Resources; whole != nil {
		askers = append(askers, asker{who: "the pod", requests: whole.Requests, limits: whole.Limits})
		sum := helpers.AggregateContainerRequests(pod, helpers.PodResourcesOptions{})
		if name, above := exceeds(sum, whole.Requests); above {
			return fmt.Errorf("the containers together request %s of %s, more than the %s of the pod: raise spec.resources.requests",
				amount(sum, name), name, amount(whole.Requests, name))
		}
		for _, container := range pod.Spec.Containers {
			if name, above := exceeds(container.Resources.Limits, whole.Limits); above {
				return fmt.Errorf("container %q has a limit of %s of %s, above the %s of the pod: raise spec.resources.limits",
					container.Name, amount(container.Resources.Limits, name), name, amount(whole.Limits, name))
			}
		}
	}
	for _, a := range askers {
		if name, above := exceeds(a.requests, a.limits); above {
			return fmt.Errorf("%s requests %s of %s, more than its limit of %s, which may be a default of the namespace: set both",
				a.who, amount(a.requests, name), name, amount(a.limits, name))
		}
	}
	return nil
}

// exceeds finds a resource of which one list has more than the other, if both
// have it.
func exceeds(list, most corev1.ResourceList) (corev1.ResourceName, bool) {
	for _, name := range sorted(list) {
		quantity := list[name]
		if limit, given := most[name]; given && quantity.Cmp(limit) > 0 {
			return name, true
		}
	}
	return "", false
}

// allowed checks the pod against the limits of the namespace as the API server does.
func allowed(pod *corev1.Pod, ranges []*corev1.LimitRange) error {
	for _, limitRange := range ranges {
		for i := range limitRange.Spec.Limits {
			item := &limitRange.Spec.Limits[i]
			var askers []asker
			switch item.Type {
			case corev1.LimitTypeContainer:
				askers = containersOf(pod)
			case corev1.LimitTypePod:
				askers = []asker{wholePod(pod)}
			}
			for _, a := range askers {
				if why := a.refusedBy(item); why != "" {
					return fmt.Errorf("LimitRange %q of the namespace forbids the pod: %s %s", limitRange.Name, a.who, why)
				}
			}
		}
	}
	return nil
}

// refusedBy says which limit is broken, or nothing.
func (a asker) refusedBy(item *corev1.LimitRangeItem) string {
	for _, name := range sorted(item.Min) {
		if why := a.belowMin(name, item.Min[name]); why != "" {
			return fmt.Sprintf("%s, and the min is %s", why, amount(item.Min, name))
		}
	}
	for _, name := range sorted(item.Max) {
		if why := a.aboveMax(name, item.Max[name]); why != "" {
			return fmt.Sprintf("%s, and the max is %s", why, amount(item.Max, name))
		}
	}
	for _, name := range sorted(item.MaxLimitRequestRatio) {
		if a.aboveRatio(name, item.MaxLimitRequestRatio[name]) {
			return fmt.Sprintf("has a limit of %s and a request of %s of %s, and the maxLimitRequestRatio is %s",
				amount(a.limits, name), amount(a.requests, name), name, amount(item.MaxLimitRequestRatio, name))
		}
	}
	return ""
}

func (a asker) belowMin(name corev1.ResourceName, least resource.Quantity) string {
	_, hasRequest := a.requests[name]
	_, hasLimit := a.limits[name]
	request, limit, enforced := a.values(name, least)
	switch {
	case !hasRequest:
		return fmt.Sprintf("requests no %s", name)
	case request < enforced:
		return fmt.Sprintf("requests %s of %s", amount(a.requests, name), name)
	case hasLimit && limit < enforced:
		return fmt.Sprintf("has a limit of %s of %s", amount(a.limits, name), name)
	}
	return ""
}

func (a asker) aboveMax(name corev1.ResourceName, most resource.Quantity) string {
	_, hasLimit := a.limits[name]
	request, limit, enforced := a.values(name, most)
	switch {
	case !hasLimit:
		return fmt.Sprintf("has no limit of %s", name)
	case limit > enforced:
		return fmt.Sprintf("has a limit of %s of %s", amount(a.limits, name), name)
	case request > enforced:
		return fmt.Sprintf("requests %s of %s", amount(a.requests, name), name)
	}
	return ""
}

// aboveRatio reckons with the API server's own precision.
func (a asker) aboveRatio(name corev1.ResourceName, most resource.Quantity) bool {
	request, limit, _ := a.values(name, most)
	if request == 0 || limit == 0 {
		return true
	}
	ratio := float64(limit) / float64(request)
	if most.Value() <= resource.MaxMilliValue {
		return ratio*1000 > float64(most.MilliValue())
	}
	return ratio > float64(most.Value())
}

// values are what is asked for and what is enforced as numbers of one scale:
// thousandths where all fit. What is not asked for is 0.
func (a asker) values(name corev1.ResourceName, quantity resource.Quantity) (request, limit, enforced int64) {
	r, l := a.requests[name], a.limits[name]
	request, limit, enforced = r.Value(), l.Value(), quantity.Value()
	if max(request, limit, enforced) <= resource.MaxMilliValue {
		request, limit, enforced = r.MilliValue(), l.MilliValue(), quantity.MilliValue()
	}
	return request, limit, enforced
}

// amount writes how much of a resource a list has.
func amount(list corev1.ResourceList, name corev1.ResourceName) string {
	quantity := list[name]
	return quantity.String()
}
