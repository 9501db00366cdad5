package decision

import (
	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/quota/resourcequota"
)

// Slim removes from a job, before it is cached, the fields that are not used. Jobs are
// only patched, so no field that is missing in the cache is lost.
func Slim(adapter framework.Adapter, job framework.Object) {
	slim(job, adapter.Templates)
}

func slim(object framework.Object, templates func(framework.Object) []*corev1.PodTemplateSpec) {
	object.SetManagedFields(nil)
	delete(object.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	if bad, isBad := object.(*lenient.Unreadable); isBad {
		if bad.Partial != nil {
			slim(bad.Partial, templates)
		}
		return
	}
	for _, template := range templates(object) {
		slimTemplate(template)
	}
}

// slimTemplate retains the fields that determine requests, priorities, quota scopes, claims
// and types of devices.
func slimTemplate(template *corev1.PodTemplateSpec) {
	spec := &template.Spec
	*template = corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		InitContainers:        slimContainers(spec.InitContainers),
		Containers:            slimContainers(spec.Containers),
		PriorityClassName:     spec.PriorityClassName,
		RuntimeClassName:      spec.RuntimeClassName,
		Overhead:              spec.Overhead,
		Resources:             spec.Resources,
		ActiveDeadlineSeconds: spec.ActiveDeadlineSeconds,
		ResourceClaims:        spec.ResourceClaims,
		NodeSelector:          spec.NodeSelector,
		Affinity:              slimAffinity(spec.Affinity),
	}}
}

// slimAffinity retains what the affinity requires of nodes, and pod affinity only if it
// selects pods of other namespaces, which is rare.
func slimAffinity(affinity *corev1.Affinity) *corev1.Affinity {
	slimmed := corev1.Affinity{}
	if resourcequota.CrossesNamespaces(affinity) {
		slimmed.PodAffinity, slimmed.PodAntiAffinity = affinity.PodAffinity, affinity.PodAntiAffinity
	}
	if affinity != nil && affinity.NodeAffinity != nil && affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		slimmed.NodeAffinity = &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		}
	}
	if slimmed == (corev1.Affinity{}) {
		return nil
	}
	return &slimmed
}

func slimContainers(containers []corev1.Container) []corev1.Container {
	slimmed := make([]corev1.Container, len(containers))
	for i, container := range containers {
		slimmed[i] = corev1.Container{Name: container.Name, Resources: container.Resources, RestartPolicy: container.RestartPolicy}
	}
	return slimmed
}
