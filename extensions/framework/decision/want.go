package decision

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/requests"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
)

// Bounds of a unit's spec, as its CRD has them.
const (
	maxPodSets   = 64
	maxResources = 64
	maxSetName   = 63
)

// Want is how a unit's spec should read for the job as it is now.
type Want struct {
	// Spec without consumerRef and submissionTime, which never change.
	Spec v1alpha1.QueueUnitSpec
	// Parameters are the unit's annotations that say how to provision machines.
	Parameters map[string]string
	// Invalid says what is wrong with the job. The unit is then kept inactive, so
	// that nothing wrong is ever admitted, and of Spec only that counts.
	Invalid string
	// Warning is something that the job's owner should know: the job is admitted
	// all the same.
	Warning string
}

// WantOf works out a unit's spec. It never fails: what is wrong is said in Invalid.
// Related is the job's related object, or nil; fault is what cannot be read of both,
// if anything.
func WantOf(adapter framework.Adapter, job, related framework.Object, cluster Cluster, fault error) *Want {
	w := &Want{Spec: v1alpha1.QueueUnitSpec{Active: ptr.To(true), Preemptible: ptr.To(true)}, Parameters: ParametersOf(job)}
	err := fault
	if err == nil {
		err = w.fill(adapter, job, related, cluster)
	}
	if err != nil {
		w.Invalid = err.Error()
		w.Spec.Active = ptr.To(false)
	}
	return w
}

func (w *Want) fill(adapter framework.Adapter, job, related framework.Object, cluster Cluster) error {
	if why := JobStateOf(adapter, job, related).Unholdable; why != "" {
		return errors.New(why)
	}
	pods, err := podsOf(adapter, job, related)
	if err != nil {
		return err
	}
	podSets, total, err := measure(pods, job.GetNamespace(), cluster)
	if err != nil {
		return err
	}
	if err := w.readKeys(job); err != nil {
		return err
	}
	w.Spec.Priority, w.Spec.PriorityClassName, err = priorityOf(job, pods, cluster)
	if err != nil {
		return err
	}
	if err := minCounts(podSets, job.GetAnnotations()[wellknown.MinCountAnnotation]); err != nil {
		return err
	}
	if pods.Unsized != "" && managed(job) {
		return errors.New(pods.Unsized)
	}
	w.Spec.PodSets, w.Spec.Resource, w.Warning = podSets, total, pods.Unsized
	return nil
}

// readKeys reads the labels and annotations that have one value each.
func (w *Want) readKeys(job framework.Object) error {
	keys, err := readRunKeys(job, RunKeys{})
	if err != nil {
		return err
	}
	labels := job.GetLabels()
	preemptible, err := readBool("label "+wellknown.PreemptibleLabel, labels[wellknown.PreemptibleLabel])
	if err != nil {
		return err
	}
	w.Spec.Active, w.Spec.MaximumExecutionTimeSeconds = &keys.Active, keys.MaxTime
	w.Spec.Preemptible, w.Spec.QuotaName = &preemptible, labels[wellknown.QuotaNameLabel]
	return nil
}

// readBool reads a switch that is on unless it says otherwise.
func readBool(where, text string) (bool, error) {
	switch text {
	case "", "true":
		return true, nil
	case "false":
		return false, nil
	}
	return true, fmt.Errorf("%s must be \"true\" or \"false\", not %q", where, text)
}

// measure works out what the pods ask for, each and in total.
func measure(pods framework.Pods, namespace string, cluster Cluster) ([]v1alpha1.PodSet, corev1.ResourceList, error) {
	if len(pods.Sets) > maxPodSets {
		return nil, nil, fmt.Errorf("the job has %d groups of pods, more than %d", len(pods.Sets), maxPodSets)
	}
	total := corev1.ResourceList{}
	podSets := make([]v1alpha1.PodSet, 0, len(pods.Sets))
	for _, set := range pods.Sets {
		podSet, err := measureSet(set, namespace, cluster, total)
		if err != nil {
			return nil, nil, err
		}
		podSets = append(podSets, podSet)
	}
	if len(total) > maxResources {
		return nil, nil, fmt.Errorf("the job asks for %d different resources, more than %d", len(total), maxResources)
	}
	return podSets, total, nil
}

// measureSet works out one group of pods and adds it to the total.
func measureSet(set framework.PodSet, namespace string, cluster Cluster, total corev1.ResourceList) (v1alpha1.PodSet, error) {
	if set.Count < 0 {
		return v1alpha1.PodSet{}, fmt.Errorf("the number of pods of %q is negative: %d", set.Name, set.Count)
	}
	if len(set.Name) > maxSetName {
		return v1alpha1.PodSet{}, fmt.Errorf("the name of the pods %q is longer than %d letters", set.Name, maxSetName)
	}
	size, err := measurePod(set, namespace, cluster)
	if err != nil {
		return v1alpha1.PodSet{}, fmt.Errorf("pods of %q: %w", set.Name, err)
	}
	all, err := requests.Times(size.Requests, set.Count)
	if err == nil {
		err = requests.Add(total, all)
	}
	if err != nil {
		return v1alpha1.PodSet{}, fmt.Errorf("%d pods of %q: %w", set.Count, set.Name, err)
	}
	return v1alpha1.PodSet{
		Name: set.Name, Count: set.Count, Requests: size.Requests, Limits: size.Limits,
		PriorityClassName: podClass(set.Template, cluster), QuotaScopes: size.Scopes, Unset: size.Unset,
	}, nil
}

func measurePod(set framework.PodSet, namespace string, cluster Cluster) (requests.Size, error) {
	switch {
	case set.Declared != nil:
		one, err := requests.Declared(set.Declared)
		return requests.Size{Requests: one}, err
	case set.Template != nil:
		return requests.Pod(set.Template, namespace, cluster)
	default:
		return requests.Size{}, errors.New("they have no template")
	}
}

// minCounts reads the smallest useful sizes, "podset=n,...", into the pod sets.
func minCounts(podSets []v1alpha1.PodSet, text string) error {
	if text == "" {
		return nil
	}
	byName := make(map[string]*v1alpha1.PodSet, len(podSets))
	names := make([]string, len(podSets))
	for i := range podSets {
		byName[podSets[i].Name], names[i] = &podSets[i], podSets[i].Name
	}
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(part, "=")
		podSet := byName[strings.TrimSpace(name)]
		count, err := strconv.ParseInt(strings.TrimSpace(number), 10, 32)
		switch {
		case podSet == nil:
			return fmt.Errorf("annotation %s: %q is no group of pods of this job, which has %s; write it as GROUP=NUMBER, parted by commas",
				wellknown.MinCountAnnotation, strings.TrimSpace(name), strings.Join(names, ", "))
		case err != nil || count < 1 || count > int64(podSet.Count):
			return fmt.Errorf("annotation %s: the smallest size of %q must be a whole number from 1 to %d, its full size, not %q",
				wellknown.MinCountAnnotation, podSet.Name, podSet.Count, strings.TrimSpace(number))
		case podSet.MinCount != nil:
			return fmt.Errorf("annotation %s names %q twice", wellknown.MinCountAnnotation, podSet.Name)
		}
		podSet.MinCount = ptr.To(int32(count))
	}
	return nil
}

// Differs reports whether the unit's spec must be patched.
func (w *Want) Differs(unit *v1alpha1.QueueUnit) bool {
	return len(w.Changes(unit)) > 0 || w.ParameterChanges(unit) != nil
}

// Changes are the fields of a merge patch that bring the unit's spec in step. Of
// an invalid job only active is: the rest may be nonsense.
func (w *Want) Changes(unit *v1alpha1.QueueUnit) map[string]any {
	have, spec := &unit.Spec, &w.Spec
	changes := map[string]any{}
	set := func(field string, differ bool, value any) {
		if differ {
			changes[field] = value
		}
	}
	set("active", *spec.Active != active(unit), *spec.Active)
	if w.Invalid != "" {
		return changes
	}
	set("priority", spec.Priority != have.Priority, spec.Priority)
	set("priorityClassName", spec.PriorityClassName != have.PriorityClassName, lifecycle.OrNull(spec.PriorityClassName))
	set("quotaName", spec.QuotaName != have.QuotaName, lifecycle.OrNull(spec.QuotaName))
	set("preemptible", *spec.Preemptible != ptr.Deref(have.Preemptible, true), *spec.Preemptible)
	set("maximumExecutionTimeSeconds", !ptr.Equal(spec.MaximumExecutionTimeSeconds, have.MaximumExecutionTimeSeconds), spec.MaximumExecutionTimeSeconds)
	// To this comparison absent and empty are the same, as to the API server.
	set("podSets", !equality.Semantic.DeepEqual(spec.PodSets, have.PodSets), spec.PodSets)
	set("resource", !equality.Semantic.DeepEqual(spec.Resource, have.Resource), replaceMap(have.Resource, spec.Resource))
	return changes
}

// replaceMap is the merge patch that turns one map into the other: what is no
// longer there must be null.
func replaceMap(have, want corev1.ResourceList) map[corev1.ResourceName]any {
	patch := make(map[corev1.ResourceName]any, len(want))
	for name := range have {
		patch[name] = nil
	}
	for name, quantity := range want {
		patch[name] = quantity
	}
	return patch
}
