// Package pod has the adapters of plain pods and of groups of pods.
//
// A marked pod waits at a scheduling gate, which a policy of the API server adds. The release removes the gate. A pod
// that has passed cannot be suspended, so an eviction deletes it. Whatever created the pod can create it again, and the
// new pod waits in turn.
//
// All pods of a namespace with the same label kube-queue/pod-group are one job, a group. It is queued once it has as
// many pods as annotation kube-queue/pod-group-size says, and ends when all its pods have ended or are gone. In a
// released group, new pods pass without a decision in place of pods that have ended or are gone. Other new pods wait
// until then.
package pod

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/requests"
)

// Name is the name of the extension in --enabled-extensions.
const Name = "pod"

// Group is the API group of kind PodGroup, which units refer to. There is no such API.
const Group = "kube-queue.dev"

const (
	// podSet is the name of the only pod set of a pod.
	podSet = "pod"
	// maxSize limits the number of pods of a group.
	maxSize = 10000
)

// Adapters returns the adapters of pods and of groups.
func Adapters() []framework.Adapter { return []framework.Adapter{adapter{}, adapter{grouped: true}} }

type adapter struct{ grouped bool }

func (a adapter) Kind() framework.Kind {
	kind := framework.Kind{
		Name: Name, GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"), Resource: "pods", Native: true,
		NoPlaces: "pods get them from the release",
	}
	if a.grouped {
		kind.GroupVersionKind = schema.GroupVersionKind{Group: Group, Version: "v1", Kind: "PodGroup"}
		kind.PodLabel = framework.PodLabel{Key: wellknown.PodGroupLabel}
	}
	return kind
}

func (adapter) New() framework.Object { return &framework.PodGroup{} }

func (a adapter) State(object framework.Object) framework.JobState {
	job := framework.As[framework.PodGroup](object)
	state := framework.JobState{Gated: true, Stopped: true}
	waiting, up, ended := 0, 0, false
	open := false
	for _, pod := range job.Pods {
		switch {
		case framework.HasEnded(pod):
			state.Started, ended = true, true
			if pod.Status.Phase == corev1.PodSucceeded {
				up++
			}
		case framework.IsGated(pod):
			waiting++
		default:
			state.Started, state.Stopped = true, false
			open = open || pod.DeletionTimestamp == nil
			state.Running = state.Running || pod.Status.Phase == corev1.PodRunning
			if isReady(pod) {
				up++
			}
		}
	}
	state.Suspended = waiting > 0 && !open
	size, err := a.sizeOf(job)
	state.Incomplete = err == nil && a.grouped && len(job.Pods) < size
	state.Ready = err == nil && up >= size
	if state.Stopped && ended {
		state.End = endOf(job.Pods)
		if err == nil && up >= size { // others have replaced those that have failed
			state.End = &framework.End{Succeeded: true, Reason: "PodsSucceeded"}
		}
	}
	return state
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// endOf returns the end of a job. All its pods that have passed have ended.
func endOf(pods []*corev1.Pod) *framework.End {
	failed := slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	if failed < 0 {
		return &framework.End{Succeeded: true, Reason: "PodsSucceeded"}
	}
	pod := pods[failed]
	return &framework.End{Reason: cmp.Or(pod.Status.Reason, "PodFailed"),
		Message: strings.TrimSuffix(fmt.Sprintf("pod %s has failed: %s", pod.Name, pod.Status.Message), ": ")}
}

// sizeOf returns the number of pods that the job must have.
func (a adapter) sizeOf(job *framework.PodGroup) (int, error) {
	if !a.grouped {
		return 1, nil
	}
	text, there := job.Annotations[wellknown.PodGroupSizeAnnotation]
	if !there {
		return 0, fmt.Errorf("annotation %s is missing; delete the pods, and create them with it: it is the number of pods in the group", wellknown.PodGroupSizeAnnotation)
	}
	size, err := strconv.Atoi(text)
	if err != nil || size < 1 || size > maxSize {
		return 0, fmt.Errorf("annotation %s must be an integer from 1 to %d, not %q", wellknown.PodGroupSizeAnnotation, maxSize, text)
	}
	for _, pod := range job.Pods {
		if other := pod.Annotations[wellknown.PodGroupSizeAnnotation]; other != text && !framework.HasEnded(pod) {
			return 0, fmt.Errorf("annotation %s is %q in pod %s and %q in pod %s; delete the pods, and create them with the same number",
				wellknown.PodGroupSizeAnnotation, text, job.Pods[0].Name, other, pod.Name)
		}
	}
	return size, nil
}

// Pods returns a pod set for each shape of pods: pods of a group may differ.
func (a adapter) Pods(object framework.Object) (framework.Pods, error) {
	job := framework.As[framework.PodGroup](object)
	size, err := a.sizeOf(job)
	if err != nil {
		return framework.Pods{}, err
	}
	if len(job.Pods) < size {
		return framework.Pods{}, fmt.Errorf("the group has %d of its %d pods; create the others, or delete these and create them with a lower annotation %s", len(job.Pods), size, wellknown.PodGroupSizeAnnotation)
	}
	var pods framework.Pods
	at := map[string]int{}
	for _, pod := range counted(job.Pods, size) {
		name := a.SetOf(pod)
		i, known := at[name]
		if !known {
			i = len(pods.Sets)
			at[name] = i
			pods.Sets = append(pods.Sets, framework.PodSet{Name: name, Template: templateOf(pod), Created: true})
		}
		pods.Sets[i].Count++
	}
	return pods, nil
}

// counted returns as many pods as the size. If there are more, it first omits ended pods, because others may have
// replaced them.
func counted(pods []*corev1.Pod, size int) []*corev1.Pod {
	spare := len(pods) - size
	var counted []*corev1.Pod
	for _, pod := range pods {
		if spare > 0 && framework.HasEnded(pod) {
			spare--
			continue
		}
		counted = append(counted, pod)
	}
	return counted[:size]
}

// templateOf returns a template with the fields of the pod that determine its requests.
func templateOf(pod *corev1.Pod) *corev1.PodTemplateSpec {
	template := &corev1.PodTemplateSpec{Spec: pod.Spec}
	template.Labels = pod.Labels // affinity of other pods selects them
	template.Spec.SchedulingGates = nil
	return template
}

// SetOf returns the pod set of a pod. Pods of a group are in the same set if they request the same.
func (a adapter) SetOf(pod *corev1.Pod) string {
	if !a.grouped {
		return podSet
	}
	if set := framework.ReleasedSet(pod); set != "" {
		return set
	}
	sum := sha256.New()
	list := func(resources corev1.ResourceList) {
		for _, name := range slices.Sorted(maps.Keys(resources)) {
			quantity := resources[name]
			fmt.Fprintf(sum, "%s=%s,", name, quantity.String())
		}
		fmt.Fprint(sum, ";")
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			list(containers[i].Resources.Requests)
			list(containers[i].Resources.Limits)
			fmt.Fprintf(sum, "%s/", ptr.Deref(containers[i].RestartPolicy, ""))
		}
		fmt.Fprint(sum, "|")
	}
	if whole := pod.Spec.Resources; whole != nil {
		list(whole.Requests)
		list(whole.Limits)
	}
	list(pod.Spec.Overhead)
	for _, claim := range pod.Spec.ResourceClaims {
		fmt.Fprintf(sum, "%s,", claim.String())
	}
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) { // it selects the type of devices
		fmt.Fprintf(sum, "%s=%s,", key, pod.Spec.NodeSelector[key])
	}
	fmt.Fprint(sum, requests.SlimAffinity(pod.Spec.Affinity).String()) // caches have nothing else of it
	fmt.Fprintf(sum, "%s/%t", pod.Spec.PriorityClassName, pod.Spec.ActiveDeadlineSeconds != nil)
	return "pods-" + hex.EncodeToString(sum.Sum(nil))[:48] // long enough that users cannot find two shapes with the same name
}

func (a adapter) Passing(object framework.Object, admitted map[string]int32) []*corev1.Pod {
	job := framework.As[framework.PodGroup](object)
	left := maps.Clone(admitted)
	for _, pod := range job.Pods {
		if !framework.HasEnded(pod) && !framework.IsGated(pod) {
			left[a.SetOf(pod)]--
		}
	}
	var passing []*corev1.Pod
	for _, pod := range job.Pods {
		set := a.SetOf(pod)
		if framework.HasEnded(pod) || !framework.IsGated(pod) || pod.DeletionTimestamp != nil || left[set] <= 0 {
			continue
		}
		left[set]--
		passing = append(passing, pod)
	}
	return passing
}

// Templates returns nothing: the pods are stripped before they become a job.
func (adapter) Templates(framework.Object) []*corev1.PodTemplateSpec { return nil }

// SuspendPatch returns nothing: the framework opens the gates of the pods, or deletes them.
func (adapter) SuspendPatch(framework.Object, bool) map[string]any { return nil }
