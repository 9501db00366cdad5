package framework

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// GatedPods is an Adapter of jobs that consist of pods at a scheduling gate. Its jobs are of type PodGroup. An open
// gate cannot be closed again, so an eviction deletes the pods.
type GatedPods interface {
	Adapter
	// SetOf returns the pod set of a pod.
	SetOf(pod *corev1.Pod) string
	// Passing returns the gated pods of a job that can pass with the admitted number of pods in each pod set. Pods that
	// have already passed count towards that number until they end or are gone.
	Passing(job Object, admitted map[string]int32) []*corev1.Pod
}

// PodGroup is a job that consists of pods. It is not an API object: its metadata comes from its pods.
type PodGroup struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	// Pods are all pods that belong to the job, ordered by age and name. They are shared.
	Pods []*corev1.Pod
}

func (g *PodGroup) GetObjectKind() schema.ObjectKind { return &g.TypeMeta }

func (g *PodGroup) DeepCopyObject() runtime.Object {
	out := &PodGroup{TypeMeta: g.TypeMeta}
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	for _, pod := range g.Pods {
		out.Pods = append(out.Pods, pod.DeepCopy())
	}
	return out
}

// First returns the name of the pod that started the job, or of the oldest pod if that one is gone.
func (g *PodGroup) First() string {
	for _, pod := range g.Pods {
		if pod.UID == g.UID {
			return pod.Name
		}
	}
	return g.Pods[0].Name
}

// NewPodGroup returns the job that consists of these pods of one namespace; nil if there are none. job is the UID of
// the job whose unit has not ended; empty if there is no such unit. Without it, the oldest pod that has not ended
// starts a new job. Pods that have ended belong to the job that they were released for.
//
// The job takes labels and annotations from its oldest pod, and the latest creation time and resourceVersion of all its
// pods. It is being deleted if all pods that have not ended are. Annotation kube-queue/released is the latest attempt
// for which any of these pods was released.
func NewPodGroup(name string, all []*corev1.Pod, job types.UID) *PodGroup {
	var pods []*corev1.Pod
	for _, pod := range all {
		if _, of := releaseOf(pod); !HasEnded(pod) || job != "" && of == job {
			pods = append(pods, pod)
		}
	}
	if len(pods) == 0 && job == "" {
		pods = slices.Clone(all)
	}
	// A pod that is deleted while it waits never passes.
	staying := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return IsGated(pod) && pod.DeletionTimestamp != nil })
	if len(staying) > 0 {
		pods = staying
	}
	if len(pods) == 0 {
		return nil
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	first := pods[0]
	group := &PodGroup{Pods: pods, ObjectMeta: metav1.ObjectMeta{
		Namespace: first.Namespace, Name: name, UID: cmp.Or(job, first.UID), OwnerReferences: first.OwnerReferences,
		Labels: first.Labels, Annotations: map[string]string{}, ManagedFields: first.ManagedFields, Finalizers: first.Finalizers,
	}}
	for key, value := range first.Annotations {
		if key != wellknown.ReleasedAnnotation {
			group.Annotations[key] = value
		}
	}
	released, leaving := 0, true
	for _, pod := range pods {
		if group.CreationTimestamp.Before(&pod.CreationTimestamp) {
			group.CreationTimestamp = pod.CreationTimestamp
		}
		if isNewer(pod.ResourceVersion, group.ResourceVersion) {
			group.ResourceVersion = pod.ResourceVersion
		}
		if HasEnded(pod) {
			continue
		}
		if leaving = leaving && pod.DeletionTimestamp != nil; leaving {
			group.DeletionTimestamp = pod.DeletionTimestamp
		}
		if attempt, _ := releaseOf(pod); !IsGated(pod) {
			released = max(released, attempt)
		}
	}
	if !leaving {
		group.DeletionTimestamp = nil
	}
	if released > 0 {
		group.Annotations[wellknown.ReleasedAnnotation] = strconv.Itoa(released)
	}
	return group
}

// Release returns the value of annotation kube-queue/released for a pod of the job that passes the gate as one of the
// pod set.
func Release(attempt string, job types.UID, set string) string {
	return attempt + "/" + string(job) + "/" + set
}

// ReleasedSet returns the pod set that a pod belonged to when it passed the gate; empty if it has not passed. Its spec
// may have changed since.
func ReleasedSet(pod *corev1.Pod) string {
	parts := strings.SplitN(pod.Annotations[wellknown.ReleasedAnnotation], "/", 3)
	if len(parts) < 3 || IsGated(pod) {
		return ""
	}
	return parts[2]
}

func releaseOf(pod *corev1.Pod) (attempt int, job types.UID) {
	number, rest, _ := strings.Cut(pod.Annotations[wellknown.ReleasedAnnotation], "/")
	of, _, _ := strings.Cut(rest, "/")
	attempt, _ = strconv.Atoi(number)
	return attempt, types.UID(of)
}

// isNewer reports whether a resourceVersion is newer than another one. They are decimal numbers without leading zeros.
func isNewer(version, than string) bool {
	return cmp.Or(cmp.Compare(len(version), len(than)), cmp.Compare(version, than)) > 0
}

// HasEnded reports whether the containers of a pod have ended for good.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// IsGated reports whether a pod waits at the gate of kube-queue.
func IsGated(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, isGate)
}

// IsGrowth reports whether a pod belongs to a job whose growth is gated.
func IsGrowth(pod *corev1.Pod) bool { return pod.Annotations[wellknown.GrowthAnnotation] != "" }

func isGate(gate corev1.PodSchedulingGate) bool { return gate.Name == wellknown.PodGate }

// GatesLeft returns the scheduling gates of a pod except that of kube-queue.
func GatesLeft(pod *corev1.Pod) []corev1.PodSchedulingGate {
	return slices.DeleteFunc(append([]corev1.PodSchedulingGate{}, pod.Spec.SchedulingGates...), isGate)
}
