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

// slimTemplate retains the fields that determine requests, priorities and quota scopes.
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
		Affinity:              slimAffinity(spec.Affinity),
	}}
}

// slimAffinity retains the affinity only if it selects pods of other namespaces, which
// is rare.
func slimAffinity(affinity *corev1.Affinity) *corev1.Affinity {
	if !resourcequota.CrossesNamespaces(affinity) {
		return nil
	}
	return &corev1.Affinity{PodAffinity: affinity.PodAffinity, PodAntiAffinity: affinity.PodAntiAffinity}
}

func slimContainers(containers []corev1.Container) []corev1.Container {
	slimmed := make([]corev1.Container, len(containers))
	for i, container := range containers {
		slimmed[i] = corev1.Container{Name: container.Name, Resources: container.Resources, RestartPolicy: container.RestartPolicy}
	}
	return slimmed
}
