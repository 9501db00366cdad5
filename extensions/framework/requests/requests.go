// Package requests works out what the pods of a job will really ask for.
//
// The API server fills in a pod when it is created: limits become requests where
// none are given, the LimitRanges of the namespace give what is still missing, and
// the RuntimeClass its overhead, in this order. Templates inside a job are not
// filled in, so it is done here, before the arithmetic of
// k8s.io/component-helpers, which knows init containers, sidecars, overhead and
// pod-level resources. A pod that the API server would refuse for what it asks for
// is an error, since a job of such pods would wait for them for ever.
//
// What else a ResourceQuota weighs in a pod is worked out with it: which scopes the
// pod matches, and which containers say nothing of what it may demand of each.
//
// Invariants: no result wraps; a sum or product that no quantity can hold is an
// error that says which resource it was. What is given is never changed.
package requests

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// Size is what a quota weighs in one pod.
type Size struct {
	Requests, Limits corev1.ResourceList
	// Scopes of a ResourceQuota that the pod matches, of BestEffort, Terminating and
	// CrossNamespacePodAffinity.
	Scopes []corev1.ResourceQuotaScope
	// Unset names the containers that say nothing of requests.cpu, requests.memory,
	// limits.cpu or limits.memory, parted by commas.
	Unset map[corev1.ResourceName]string
}

// Pod returns the size of one pod of the template in a namespace.
func Pod(template *corev1.PodTemplateSpec, namespace string, cluster Cluster) (Size, error) {
	pod, err := created(template, namespace, cluster)
	if err != nil {
		return Size{}, err
	}
	size := Size{
		Requests: helpers.PodRequests(pod, helpers.PodResourcesOptions{}),
		Limits:   helpers.PodLimits(pod, helpers.PodResourcesOptions{}),
		Scopes:   scopesOf(pod),
		Unset:    unsetBy(pod),
	}
	for _, list := range []corev1.ResourceList{size.Requests, size.Limits} {
		if err := within(list); err != nil {
			return Size{}, err
		}
	}
	return size, nil
}

// created is the pod that the API server makes of the template.
func created(template *corev1.PodTemplateSpec, namespace string, cluster Cluster) (*corev1.Pod, error) {
	pod := &corev1.Pod{Spec: *template.Spec.DeepCopy()}
	if err := check(&pod.Spec); err != nil {
		return nil, err
	}
	decode(pod)
	ranges := cluster.LimitRanges(namespace)
	addDefaults(pod, ranges)
	if err := addOverhead(pod, cluster); err != nil {
		return nil, err
	}
	if err := allowed(pod, ranges); err != nil {
		return nil, err
	}
	return pod, consistent(pod)
}

// Declared checks what the owner of a job says that one of its pods asks for.
func Declared(list corev1.ResourceList) (corev1.ResourceList, error) {
	for _, name := range sorted(list) {
		if quantity := list[name]; quantity.Sign() < 0 {
			return nil, fmt.Errorf("a negative amount of %s: %s", name, quantity.String())
		}
	}
	return list, within(list)
}

// Times multiplies what one pod asks for by the number of pods.
func Times(one corev1.ResourceList, count int32) (corev1.ResourceList, error) {
	product := make(corev1.ResourceList, len(one))
	for name, quantity := range one {
		// Mul goes over to a number of any size where int64 is too small.
		many := quantity.DeepCopy()
		many.Mul(int64(count))
		product[name] = many
	}
	return product, within(product)
}

// Add adds what is asked for to the total.
func Add(total, more corev1.ResourceList) error {
	for name, quantity := range more {
		sum := total[name]
		sum.Add(quantity)
		total[name] = sum
	}
	return within(total)
}

// within checks that each quantity is one that can be written, read and counted:
// CPU in thousandths, all else in whole units, in 64 bits.
func within(list corev1.ResourceList) error {
	for _, name := range sorted(list) {
		most := resource.NewQuantity(math.MaxInt64, resource.DecimalSI)
		if name == corev1.ResourceCPU {
			most = resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI)
		}
		if quantity := list[name]; quantity.Cmp(*most) > 0 {
			return fmt.Errorf("the pods ask for more %s than can be counted", name)
		}
	}
	return nil
}

// check refuses what the API server would refuse in a pod: amounts below 0.
func check(spec *corev1.PodSpec) error {
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		if err := checkResources(fmt.Sprintf("container %q", container.Name), container.Resources); err != nil {
			return err
		}
	}
	if spec.Resources != nil {
		if err := checkResources("the pod", *spec.Resources); err != nil {
			return err
		}
	}
	return checkResources("the overhead of the pod", corev1.ResourceRequirements{Requests: spec.Overhead})
}

func checkResources(where string, resources corev1.ResourceRequirements) error {
	for _, list := range []corev1.ResourceList{resources.Requests, resources.Limits} {
		for _, name := range sorted(list) {
			if quantity := list[name]; quantity.Sign() < 0 {
				return fmt.Errorf("%s asks for a negative amount of %s: %s", where, name, quantity.String())
			}
		}
	}
	return nil
}

func sorted(list corev1.ResourceList) []corev1.ResourceName {
	names := make([]corev1.ResourceName, 0, len(list))
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
