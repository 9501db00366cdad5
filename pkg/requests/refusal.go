package requests

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// target is a container or a pod with its requests and limits.
type target struct {
	name             string
	requests, limits corev1.ResourceList
}

func containersOf(pod *corev1.Pod) []target {
	var targets []target
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		targets = append(targets, target{
			name: fmt.Sprintf("container %q", container.Name), requests: container.Resources.Requests, limits: container.Resources.Limits,
		})
	}
	return targets
}

// wholePod returns the pod as LimitRanges check it: without overhead, and with only CPU
// and memory of the pod-level resources.
func wholePod(pod *corev1.Pod) target {
	whole := target{
		name:     "the pod",
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

// consistent checks for contradictions that defaults may have caused or resolved: a request above its limit, a request
// that differs from the limit for a resource that cannot be overcommitted, and containers that exceed the pod-level
// resources.
func consistent(pod *corev1.Pod) error {
	targets := containersOf(pod)
	if whole := pod.Spec.Resources; whole != nil {
		targets = append(targets, target{name: "the pod", requests: whole.Requests, limits: whole.Limits})
		sum := helpers.AggregateContainerRequests(pod, helpers.PodResourcesOptions{})
		if name, above := exceeds(sum, whole.Requests); above {
			return fmt.Errorf("the containers request %s %s in total, but spec.resources.requests of the pod is %s; raise the request of the pod",
				amount(sum, name), name, amount(whole.Requests, name))
		}
		for _, container := range pod.Spec.Containers {
			if name, above := exceeds(container.Resources.Limits, whole.Limits); above {
				return fmt.Errorf("container %q has a %s limit of %s, but spec.resources.limits of the pod is %s; raise the limit of the pod",
					container.Name, name, amount(container.Resources.Limits, name), amount(whole.Limits, name))
			}
		}
	}
	for _, t := range targets {
		if name, above := exceeds(t.requests, t.limits); above {
			return fmt.Errorf("%s requests %s %s, but its limit is %s; lower the request or raise the limit (a LimitRange may set a default for either)",
				t.name, amount(t.requests, name), name, amount(t.limits, name))
		}
		for _, name := range sortedKeys(t.requests) {
			if err := t.checkExclusive(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkExclusive checks the request for a resource that cannot be overcommitted: huge pages, and extended resources,
// except those of Kubernetes' own domains.
func (t target) checkExclusive(name corev1.ResourceName) error {
	extended := isDevice(name) && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
	request := t.requests[name]
	limit, limited := t.limits[name]
	switch {
	case !extended && !isHugePages(name):
	case !limited || request.Cmp(limit) != 0:
		return fmt.Errorf("%s requests %s %s without the same limit, which Kubernetes requires for this resource; set the limit to the request",
			t.name, amount(t.requests, name), name)
	case extended && !isInteger(request):
		return fmt.Errorf("%s: the amount of %s must be an integer, not %s", t.name, name, request.String())
	}
	return nil
}

// exceeds returns a resource that both lists contain and that the first has more of.
func exceeds(list, most corev1.ResourceList) (corev1.ResourceName, bool) {
	for _, name := range sortedKeys(list) {
		quantity := list[name]
		if limit, given := most[name]; given && quantity.Cmp(limit) > 0 {
			return name, true
		}
	}
	return "", false
}

// allowed checks the pod against the LimitRanges of the namespace as the API server does. injected is the pod with
// its additional resources. Only their sum is known, not the containers that have them.
func allowed(pod, injected *corev1.Pod, ranges []*corev1.LimitRange) error {
	whole := wholePod(injected)
	if injected != pod {
		whole.name = "the pod with its additional resources"
	}
	for _, limitRange := range ranges {
		for i := range limitRange.Spec.Limits {
			item := &limitRange.Spec.Limits[i]
			var targets []target
			switch item.Type {
			case corev1.LimitTypeContainer:
				targets = containersOf(pod)
			case corev1.LimitTypePod:
				targets = []target{whole}
			}
			for _, t := range targets {
				if why := t.refusedBy(item); why != "" {
					return fmt.Errorf("LimitRange %q rejects the pod: %s %s; change the requests or limits in the pod template", limitRange.Name, t.name, why)
				}
			}
		}
	}
	return nil
}

// refusedBy returns which limit the target violates; empty for none.
func (t target) refusedBy(item *corev1.LimitRangeItem) string {
	for _, name := range sortedKeys(item.Min) {
		if why := t.belowMin(name, item.Min[name]); why != "" {
			return fmt.Sprintf("%s, but the min is %s", why, amount(item.Min, name))
		}
	}
	for _, name := range sortedKeys(item.Max) {
		if why := t.aboveMax(name, item.Max[name]); why != "" {
			return fmt.Sprintf("%s, but the max is %s", why, amount(item.Max, name))
		}
	}
	for _, name := range sortedKeys(item.MaxLimitRequestRatio) {
		if t.aboveRatio(name, item.MaxLimitRequestRatio[name]) {
			return fmt.Sprintf("has a %s limit of %s and a request of %s, but the maxLimitRequestRatio is %s",
				name, amount(t.limits, name), amount(t.requests, name), amount(item.MaxLimitRequestRatio, name))
		}
	}
	return ""
}

func (t target) belowMin(name corev1.ResourceName, least resource.Quantity) string {
	_, hasRequest := t.requests[name]
	_, hasLimit := t.limits[name]
	request, limit, enforced := t.values(name, least)
	switch {
	case !hasRequest:
		return fmt.Sprintf("requests no %s", name)
	case request < enforced:
		return fmt.Sprintf("requests %s %s", amount(t.requests, name), name)
	case hasLimit && limit < enforced:
		return fmt.Sprintf("has a %s limit of %s", name, amount(t.limits, name))
	}
	return ""
}

func (t target) aboveMax(name corev1.ResourceName, most resource.Quantity) string {
	_, hasLimit := t.limits[name]
	request, limit, enforced := t.values(name, most)
	switch {
	case !hasLimit:
		return fmt.Sprintf("has no %s limit", name)
	case limit > enforced:
		return fmt.Sprintf("has a %s limit of %s", name, amount(t.limits, name))
	case request > enforced:
		return fmt.Sprintf("requests %s %s", amount(t.requests, name), name)
	}
	return ""
}

// aboveRatio calculates with the API server's own precision.
func (t target) aboveRatio(name corev1.ResourceName, most resource.Quantity) bool {
	request, limit, _ := t.values(name, most)
	if request == 0 || limit == 0 {
		return true
	}
	ratio := float64(limit) / float64(request)
	if most.Value() <= resource.MaxMilliValue {
		return ratio*1000 > float64(most.MilliValue())
	}
	return ratio > float64(most.Value())
}

// values returns request, limit and the enforced quantity as numbers of one scale:
// thousandths if all fit. An absent request or limit is 0.
func (t target) values(name corev1.ResourceName, quantity resource.Quantity) (request, limit, enforced int64) {
	r, l := t.requests[name], t.limits[name]
	request, limit, enforced = r.Value(), l.Value(), quantity.Value()
	if max(request, limit, enforced) <= resource.MaxMilliValue {
		request, limit, enforced = r.MilliValue(), l.MilliValue(), quantity.MilliValue()
	}
	return request, limit, enforced
}

// amount returns the quantity of a resource in a list as text.
func amount(list corev1.ResourceList, name corev1.ResourceName) string {
	quantity := list[name]
	return resources.FormatQuantity(string(name), quantity)
}
