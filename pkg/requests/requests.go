// Package requests computes the effective requests of pods: of the pods that will be created from a template in a job
// (Pod), and of real pods (Rules.OfPod). Both programs use it, so that a job is admitted with what its pods are
// charged.
//
// The API server sets defaults in a pod when it is created: limits become missing requests, the LimitRanges of the
// namespace add what is still missing, and the RuntimeClass adds its overhead and its node selector, in this order.
// Templates inside a job have no defaults, so they are set here, before the arithmetic of k8s.io/component-helpers,
// which handles init containers, sidecars, overhead and pod-level resources. A pod that the API server rejects
// because of its resources is an error, because a job would wait for such pods forever.
//
// Devices such as GPUs can be claimed instead of requested, and have types that a pod selects by node labels.
// Webhooks can add containers to pods. Rules are the administrator's rules for all of these. All names of a device
// count as one resource, because a quota limits only what it names. They are mapped after the arithmetic of
// containers, because the scheduler allocates devices separately for each name. The type never comes from a node, so
// the charge is known before the release.
//
// The package also computes what else a ResourceQuota checks in a pod: the scopes that the pod matches, and the
// containers that do not set a resource that the quota may require. Units have this with every backend, because
// job-extensions does not know the backend, and so that a change of backend needs no new units.
//
// Invariants: no result for a job overflows; a sum or product that no quantity can hold is an error that names the
// resource. Arguments are never changed.
package requests

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// Size is everything that a quota counts in one pod.
type Size struct {
	Requests, Limits corev1.ResourceList
	// Scopes are the ResourceQuota scopes that the pod matches, out of BestEffort, Terminating and
	// CrossNamespacePodAffinity.
	Scopes []corev1.ResourceQuotaScope
	// Unset names the containers that do not set requests.cpu, requests.memory,
	// limits.cpu or limits.memory, separated by commas.
	Unset map[corev1.ResourceName]string
	// Shared are the claims that the pod uses by name. Requests does not contain them.
	Shared Shared
}

// Pod returns the size of one pod of the template in a namespace.
func Pod(template *corev1.PodTemplateSpec, namespace string, cluster Cluster) (Size, error) {
	pod, injected, err := created(template, namespace, cluster)
	if err != nil {
		return Size{}, err
	}
	size := Size{
		Requests: helpers.PodRequests(injected, helpers.PodResourcesOptions{}),
		Limits:   helpers.PodLimits(injected, helpers.PodResourcesOptions{}),
		Scopes:   scopesOf(injected),
		Unset:    unsetBy(pod),
	}
	rules := cluster.Rules()
	for _, list := range []*corev1.ResourceList{&size.Requests, &size.Limits} {
		if err := within(*list); err != nil {
			return Size{}, err
		}
		if *list, err = rules.named(*list); err != nil {
			return Size{}, err
		}
		if err := within(*list); err != nil {
			return Size{}, err
		}
	}
	size.Requests, size.Shared, err = rules.Devices(size.Requests, &pod.Spec, namespace, cluster)
	if err != nil {
		return Size{}, err
	}
	resources.Rewrite(size.Requests)
	resources.Rewrite(size.Limits)
	return size, nil
}

// created returns the pod that the API server creates from the template, without and with the additions of webhooks.
func created(template *corev1.PodTemplateSpec, namespace string, cluster Cluster) (pod, injected *corev1.Pod, err error) {
	pod = &corev1.Pod{Spec: *template.Spec.DeepCopy()}
	if err := check(&pod.Spec); err != nil {
		return nil, nil, err
	}
	decode(pod)
	ranges := cluster.LimitRanges(namespace)
	addDefaults(pod, ranges)
	if err := addRuntimeClass(pod, cluster); err != nil {
		return nil, nil, err
	}
	injected = cluster.Rules().Additional.injected(pod, namespace)
	if err := allowed(pod, injected, ranges); err != nil {
		return nil, nil, err
	}
	return pod, injected, consistent(pod)
}

// Created returns the pod spec that the API server creates from the template in a namespace, including the unnamed
// containers that webhooks add.
func Created(template *corev1.PodTemplateSpec, namespace string, cluster Cluster) (*corev1.PodSpec, error) {
	_, injected, err := created(template, namespace, cluster)
	if err != nil {
		return nil, err
	}
	return &injected.Spec, nil
}

// Declared checks the requests of one pod that the owner of a job has declared, and adds
// the default types of its devices.
func Declared(list corev1.ResourceList, rules Rules) (corev1.ResourceList, error) {
	for _, name := range sortedKeys(list) {
		if quantity := list[name]; quantity.Sign() < 0 {
			return nil, fmt.Errorf("the amount of %s must be 0 or more, not %s", name, quantity.String())
		}
	}
	if err := within(list); err != nil {
		return nil, err
	}
	list, err := rules.named(list)
	if err != nil {
		return nil, err
	}
	return rules.withTypes(list, &corev1.PodSpec{})
}

// Times multiplies the requests of one pod by the number of pods. Each pod is charged whole base units.
func Times(one corev1.ResourceList, count int32) (corev1.ResourceList, error) {
	product := make(corev1.ResourceList, len(one))
	for name, quantity := range one {
		// Mul switches to a big number if int64 is too small.
		many := quantity.DeepCopy()
		if name != corev1.ResourceCPU { // it has whole thousandths already
			many.RoundUp(0)
		}
		many.Mul(int64(count))
		product[name] = many
	}
	return product, within(product)
}

// Add adds requests to the total.
func Add(total, more corev1.ResourceList) error {
	addUnchecked(total, more)
	return within(total)
}

func addUnchecked(total, more corev1.ResourceList) {
	for name, quantity := range more {
		sum := total[name]
		sum.Add(quantity)
		total[name] = sum
	}
}

// within checks that each quantity can be written, read and counted in 64 bits: CPU in
// thousandths, everything else in whole units.
func within(list corev1.ResourceList) error {
	for _, name := range sortedKeys(list) {
		most := resource.NewQuantity(math.MaxInt64, resource.DecimalSI)
		if name == corev1.ResourceCPU {
			most = resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI)
		}
		if quantity := list[name]; quantity.Cmp(*most) > 0 {
			return fmt.Errorf("the amount of %s exceeds the maximum of %s; request less", name, most)
		}
	}
	return nil
}

// check rejects pods that the API server rejects: those with negative amounts, or with names that no resource has.
func check(spec *corev1.PodSpec) error {
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		if err := checkResources(fmt.Sprintf("container %q", container.Name), container.Resources, isContainerResource); err != nil {
			return err
		}
	}
	if spec.Resources != nil {
		if err := checkResources("the pod", *spec.Resources, helpers.IsSupportedPodLevelResource); err != nil {
			return err
		}
	}
	return checkResources("the overhead of the pod", corev1.ResourceRequirements{Requests: spec.Overhead}, isContainerResource)
}

func checkResources(where string, resources corev1.ResourceRequirements, is func(corev1.ResourceName) bool) error {
	for _, list := range []corev1.ResourceList{resources.Requests, resources.Limits} {
		for _, name := range sortedKeys(list) {
			if quantity := list[name]; quantity.Sign() < 0 {
				return fmt.Errorf("%s: the amount of %s must be 0 or more, not %s", where, name, quantity.String())
			}
			if !is(name) {
				return fmt.Errorf("%s cannot request resource %q; containers can request cpu, memory, ephemeral-storage, hugepages-SIZE and PREFIX/NAME, "+
					"and spec.resources of the pod cpu, memory and hugepages-SIZE", where, name)
			}
		}
	}
	return nil
}
