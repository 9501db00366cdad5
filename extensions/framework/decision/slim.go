package decision

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/requests"
)

// Slim removes unused fields from a job before it is cached. Of managedFields, it keeps only whether the mark is set
// by server-side apply: see IsApplied. Jobs are only patched, so fields that are missing in the cache are not lost.
func Slim(adapter framework.Adapter, job framework.Object) {
	slim(job, adapter.Templates)
}

func slim(object framework.Object, templates func(framework.Object) []*corev1.PodTemplateSpec) {
	object.SetManagedFields(applied(object.GetManagedFields()))
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

// SlimPod removes unused fields from a pod that waits at a gate, or has passed it.
func SlimPod(pod *corev1.Pod) {
	gates, status := pod.Spec.SchedulingGates, pod.Status
	template := &corev1.PodTemplateSpec{Spec: pod.Spec}
	slim(pod, func(framework.Object) []*corev1.PodTemplateSpec { return []*corev1.PodTemplateSpec{template} })
	pod.Spec, pod.Status = template.Spec, corev1.PodStatus{Phase: status.Phase, Reason: status.Reason, Message: status.Message}
	pod.Spec.SchedulingGates = gates
	for _, condition := range status.Conditions {
		if condition.Type == corev1.PodReady {
			pod.Status.Conditions = []corev1.PodCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
}

// applied returns an entry without fields if a manager sets the mark by server-side apply, and nil otherwise. An
// informer can slim an object twice.
func applied(managed []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	for _, entry := range managed {
		if entry.Operation == metav1.ManagedFieldsOperationApply &&
			(entry.FieldsV1 == nil || strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+wellknown.SuspendAnnotation+`"`)) {
			return []metav1.ManagedFieldsEntry{{Operation: metav1.ManagedFieldsOperationApply}}
		}
	}
	return nil
}

// slimTemplate retains the fields that determine requests, priorities, quota scopes, claims, types of devices, and
// whether an operator accepts the job.
func slimTemplate(template *corev1.PodTemplateSpec) {
	spec := &template.Spec
	*template = corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		InitContainers:        slimContainers(spec.InitContainers),
		Containers:            slimContainers(spec.Containers),
		RestartPolicy:         spec.RestartPolicy,
		PriorityClassName:     spec.PriorityClassName,
		RuntimeClassName:      spec.RuntimeClassName,
		Overhead:              spec.Overhead,
		Resources:             spec.Resources,
		ActiveDeadlineSeconds: spec.ActiveDeadlineSeconds,
		ResourceClaims:        spec.ResourceClaims,
		NodeSelector:          spec.NodeSelector,
		Affinity:              requests.SlimAffinity(spec.Affinity),
	}}
}

func slimContainers(containers []corev1.Container) []corev1.Container {
	slimmed := make([]corev1.Container, len(containers))
	for i, container := range containers {
		slimmed[i] = corev1.Container{Name: container.Name, Resources: container.Resources, RestartPolicy: container.RestartPolicy}
	}
	return slimmed
}
