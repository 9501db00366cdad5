package requests

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	helpers "k8s.io/component-helpers/resource"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// otherNamespaces is the key of all namespaces without an entry.
const otherNamespaces = "*"

// Prefixes of the resources in an entry, the same as in a ResourceQuota.
const (
	requestsPrefix = "requests."
	limitsPrefix   = "limits."
)

// Additional are the resources that webhooks add to each pod of a namespace, for example with sidecars. The namespace
// "*" is for all namespaces without an entry.
type Additional map[string]corev1.ResourceRequirements

// ParseAdditional reads Additional from entries
// NAMESPACE:requests.RESOURCE=AMOUNT:limits.RESOURCE=AMOUNT, separated by commas. An entry
// has any number of amounts. As in a container, a limit without a request becomes the request.
func ParseAdditional(text string) (Additional, error) {
	all := Additional{}
	for _, entry := range entries(text) {
		namespace, amounts, both := strings.Cut(entry, ":")
		if !both {
			return nil, fmt.Errorf("%q must be NAMESPACE:requests.RESOURCE=AMOUNT, for example team-a:requests.cpu=100m:limits.memory=128Mi, or NAMESPACE: for nothing", entry)
		}
		if faults := validation.IsDNS1123Label(namespace); namespace != otherNamespaces && len(faults) > 0 {
			return nil, fmt.Errorf("%q is neither the name of a namespace nor *: %s", namespace, faults[0])
		}
		if _, twice := all[namespace]; twice {
			return nil, fmt.Errorf("namespace %q is listed twice; remove one entry", namespace)
		}
		resources, err := parseResources(amounts)
		if err != nil {
			return nil, fmt.Errorf("namespace %q: %w", namespace, err)
		}
		all[namespace] = resources
	}
	return all, nil
}

func parseResources(text string) (corev1.ResourceRequirements, error) {
	resources := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	if text == "" {
		return resources, nil
	}
	for amount := range strings.SplitSeq(text, ":") {
		if err := parseAmount(amount, resources); err != nil {
			return resources, err
		}
	}
	for _, list := range []corev1.ResourceList{resources.Requests, resources.Limits} {
		roundUp(list)
		if err := within(list); err != nil {
			return resources, err
		}
	}
	resources.Requests = withMissing(resources.Requests, resources.Limits)
	return resources, nil
}

// parseAmount reads one amount into the requests or the limits.
func parseAmount(text string, into corev1.ResourceRequirements) error {
	key, value, _ := strings.Cut(text, "=")
	list, name := into.Requests, strings.TrimPrefix(key, requestsPrefix)
	if strings.HasPrefix(key, limitsPrefix) {
		list, name = into.Limits, strings.TrimPrefix(key, limitsPrefix)
	}
	if name == key {
		return fmt.Errorf("%q must be requests.RESOURCE=AMOUNT or limits.RESOURCE=AMOUNT, for example requests.cpu=100m", text)
	}
	resourceName := corev1.ResourceName(name)
	if err := checkContainerResource(resourceName); err != nil {
		return err
	}
	quantity, err := resources.Parse(value)
	switch _, twice := list[resourceName]; {
	case twice:
		return fmt.Errorf("%s is listed twice; remove one amount", key)
	case err != nil:
		return fmt.Errorf("%s: %q is not an amount; write a quantity such as 100m or 128Mi", key, value)
	case quantity.Sign() < 0:
		return fmt.Errorf("the amount of %s must be 0 or more, not %s", key, value)
	case isDevice(resourceName) && !isInteger(quantity):
		return fmt.Errorf("the amount of %s must be an integer, not %s", key, value)
	}
	list[resourceName] = quantity
	return nil
}

// checkContainerResource checks that a container can request the resource.
func checkContainerResource(name corev1.ResourceName) error {
	switch {
	case !isContainerResource(name):
		return fmt.Errorf("containers cannot request resource %q; use cpu, memory, ephemeral-storage, hugepages-SIZE or PREFIX/NAME", name)
	case !isDevice(name):
		return nil
	}
	return checkName(string(name))
}

// isContainerResource reports whether the name is one of Kubernetes' resources or an extended resource, not a key of a
// ResourceQuota.
func isContainerResource(name corev1.ResourceName) bool {
	return name == corev1.ResourceEphemeralStorage || helpers.IsSupportedPodLevelResource(name) ||
		isDevice(name) && !strings.HasPrefix(string(name), requestsPrefix)
}

// isDevice reports whether the name is an extended resource.
func isDevice(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }

func isInteger(quantity resource.Quantity) bool {
	rounded := quantity.DeepCopy()
	return rounded.RoundUp(0)
}

// of returns the resources that are added to the pods of a namespace.
func (a Additional) of(namespace string) corev1.ResourceRequirements {
	if resources, listed := a[namespace]; listed {
		return resources
	}
	return a[otherNamespaces]
}

// injected returns the pod with a sidecar that requests the additional resources of the namespace, or the pod itself
// if there are none. This way the arithmetic of pods applies: a sidecar counts in addition to all other containers,
// but not if the pod sets the resource at pod level.
func (a Additional) injected(pod *corev1.Pod, namespace string) *corev1.Pod {
	resources := a.of(namespace)
	if len(resources.Requests) == 0 { // each limit has a request
		return pod
	}
	sidecar := corev1.Container{RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Resources: resources}
	with := *pod
	with.Spec.InitContainers = append([]corev1.Container{sidecar}, pod.Spec.InitContainers...)
	return &with
}
