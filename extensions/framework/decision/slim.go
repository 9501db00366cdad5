package decision

import (
	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/quota/resourcequota"
)

// Slim drops from a job, before it is cached, what nothing here reads. Jobs are
// only ever patched, so nothing that is missing from the cache is lost.
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

// slimTemplate keeps what requests, priorities and the scopes of quotas are made of.
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

// slimAffinity keeps one that reaches into other namespaces, as hardly any does.
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
