package decision

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/bounds"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Desired is the unit spec that matches the current job.
type Desired struct {
	// Spec without consumerRef and submissionTime, which never change.
	Spec v1alpha1.QueueUnitSpec
	// Parameters are the unit's annotations with provisioning parameters.
	Parameters map[string]string
	// Invalid is why the job is invalid. The unit is then inactive, so that an invalid job is never admitted, and
	// only Active of Spec counts.
	Invalid string
	// Warning is for the job's owner; it does not prevent the admission of the job.
	Warning string
	// Ignored is why a minimum number of pods has no effect, for the job's owner.
	Ignored string
	// Empty: the job has pods, but none of them requests anything. Its owner is warned.
	Empty bool
}

// DesiredOf computes a unit's spec. It never fails: Invalid contains what is wrong. Related is the job's related
// object, or nil; fault is the error about the unreadable part of either, if any.
func DesiredOf(adapter framework.Adapter, job, related framework.Object, cluster Cluster, fault error) *Desired {
	d := &Desired{Spec: v1alpha1.QueueUnitSpec{Active: new(true), Preemptible: new(true)}, Parameters: ParametersOf(job)}
	err := fault
	if err == nil {
		err = d.fill(adapter, job, related, cluster)
	}
	if err != nil {
		d.Invalid = err.Error()
		d.Spec.Active = new(false)
	}
	return d
}

func (d *Desired) fill(adapter framework.Adapter, job, related framework.Object, cluster Cluster) error {
	state := JobStateOf(adapter, job, related)
	if why := state.Unholdable; why != "" {
		return errors.New(why)
	}
	d.Spec.Unstoppable = state.Unstoppable
	pods, err := Pods(adapter, requested(adapter, job), related)
	if err != nil {
		return err
	}
	podSets, total, err := measure(pods, job.GetNamespace(), cluster)
	if err != nil {
		return err
	}
	if err := d.readKeys(job); err != nil {
		return err
	}
	d.Spec.Priority, d.Spec.PriorityClassName, err = priorityOf(job, pods, cluster)
	if err != nil {
		return err
	}
	if d.Ignored, err = minCounts(adapter, job, pods, podSets); err != nil {
		return err
	}
	if pods.Unsized != "" && managed(job) {
		return errors.New(pods.Unsized)
	}
	d.Spec.PodSets, d.Spec.Resource, d.Warning = podSets, total, pods.Unsized
	d.Empty = empty(pods, total)
	return nil
}

// empty reports whether the job has pods but requests nothing. A size of 0 that the owner has declared is intended.
func empty(pods framework.Pods, total corev1.ResourceList) bool {
	for _, amount := range total {
		if !amount.IsZero() {
			return false
		}
	}
	return slices.ContainsFunc(pods.Sets, func(set framework.PodSet) bool { return set.Count > 0 && set.Declared == nil })
}

// readKeys reads the labels and annotations that each hold one value.
func (d *Desired) readKeys(job framework.Object) error {
	keys, err := readRunKeys(job, RunKeys{})
	if err != nil {
		return err
	}
	labels := job.GetLabels()
	preemptible, err := readBool("label "+wellknown.PreemptibleLabel, labels[wellknown.PreemptibleLabel])
	if err != nil {
		return err
	}
	d.Spec.Active, d.Spec.MaximumExecutionTimeSeconds = &keys.Active, keys.MaxTime
	// It enforces nothing, so an invalid one is ignored; IgnoredKeys reports it.
	d.Spec.ExpectedRunTimeSeconds, _ = readSeconds(wellknown.ExpectedRunTimeAnnotation, job.GetAnnotations())
	d.Spec.Preemptible, d.Spec.QuotaName = &preemptible, labels[wellknown.QuotaNameLabel]
	return nil
}

// readBool reads a switch that is on by default.
func readBool(where, text string) (bool, error) {
	switch text {
	case "", "true":
		return true, nil
	case "false":
		return false, nil
	}
	return true, fmt.Errorf("%s must be \"true\" or \"false\", not %q", where, text)
}

// measure computes the requests of the pods, per pod and in total.
func measure(pods framework.Pods, namespace string, cluster Cluster) ([]v1alpha1.PodSet, corev1.ResourceList, error) {
	if len(pods.Sets) > bounds.PodSets {
		return nil, nil, fmt.Errorf("the job has %d pod sets, but at most %d are allowed; combine pods of equal templates", len(pods.Sets), bounds.PodSets)
	}
	total, shared := corev1.ResourceList{}, requests.Shared{}
	podSets := make([]v1alpha1.PodSet, 0, len(pods.Sets))
	for _, set := range pods.Sets {
		podSet, err := measureSet(set, namespace, cluster, total, shared)
		if err != nil {
			return nil, nil, err
		}
		podSets = append(podSets, podSet)
	}
	claimed, err := shared.Requests()
	if err == nil {
		err = requests.Add(total, claimed)
	}
	if err != nil {
		return nil, nil, err
	}
	resources.Rewrite(total)
	if len(total) > bounds.Resources {
		return nil, nil, fmt.Errorf("the job requests %d different resources, but at most %d are allowed; request fewer resources", len(total), bounds.Resources)
	}
	if err := bounds.Check(&v1alpha1.QueueUnitSpec{PodSets: podSets, Resource: total}); err != nil {
		return nil, nil, fmt.Errorf("the QueueUnit of the job would be too large: %w", err)
	}
	return podSets, total, nil
}

// measureSet computes one pod set. It adds the requests to the total, and the claims that the pods use by name to
// shared.
func measureSet(set framework.PodSet, namespace string, cluster Cluster, total corev1.ResourceList, shared requests.Shared) (v1alpha1.PodSet, error) {
	if set.Count < 0 {
		return v1alpha1.PodSet{}, fmt.Errorf("the number of pods of pod set %q must be 0 or more, not %d", set.Name, set.Count)
	}
	if len(set.Name) > bounds.PodSetName {
		return v1alpha1.PodSet{}, fmt.Errorf("the name of pod set %q is longer than %d characters; use a shorter name", set.Name, bounds.PodSetName)
	}
	size, err := measurePod(set, namespace, cluster)
	if err != nil {
		return v1alpha1.PodSet{}, fmt.Errorf("pod set %q: %w", set.Name, err)
	}
	all, err := requests.Times(size.Requests, set.Count)
	if err == nil {
		err = requests.Add(total, all)
	}
	if err != nil {
		return v1alpha1.PodSet{}, fmt.Errorf("pod set %q (%d pods): %w", set.Name, set.Count, err)
	}
	if set.Count > 0 {
		cluster.Rules().Share(shared, size.Shared)
	}
	return v1alpha1.PodSet{
		Name: set.Name, Count: set.Count, Requests: size.Requests, Limits: size.Limits,
		PriorityClassName: podClass(set.Template, cluster), QuotaScopes: size.Scopes, Unset: size.Unset,
	}, nil
}

func measurePod(set framework.PodSet, namespace string, cluster requests.Cluster) (requests.Size, error) {
	switch {
	case set.Declared != nil:
		one, err := requests.Declared(set.Declared, cluster.Rules())
		return requests.Size{Requests: one}, err
	case set.Template != nil:
		if set.Created {
			cluster = requests.Complete(set.Template, cluster)
		}
		size, err := requests.Pod(set.Template, namespace, cluster)
		crossing := corev1.ResourceQuotaScopeCrossNamespacePodAffinity
		if set.CrossesNamespaces && !slices.Contains(size.Scopes, crossing) {
			size.Scopes = append(size.Scopes, crossing)
		}
		return size, err
	default:
		return requests.Size{}, errors.New("the pod template is missing; add it")
	}
}

// Differs reports whether the unit's spec must be patched.
func (d *Desired) Differs(unit *v1alpha1.QueueUnit) bool {
	return len(d.Changes(unit)) > 0 || d.ParameterChanges(unit) != nil
}

// Exchanges reports whether the job is no longer the one that was admitted: whether its request, or the quota it is
// charged to, differs from the unit's spec.
func (d *Desired) Exchanges(unit *v1alpha1.QueueUnit) bool {
	if d.Invalid != "" {
		return true
	}
	changes := d.Changes(unit)
	for _, field := range []string{"podSets", "resource", "quotaName", "preemptible"} {
		if _, differs := changes[field]; differs {
			return true
		}
	}
	return false
}

// Changes returns the fields of a merge patch that updates the unit's spec. For an invalid job, it contains only
// active, because the rest may be meaningless.
func (d *Desired) Changes(unit *v1alpha1.QueueUnit) map[string]any {
	have, spec := &unit.Spec, &d.Spec
	changes := map[string]any{}
	set := func(field string, differ bool, value any) {
		if differ {
			changes[field] = value
		}
	}
	set("active", *spec.Active != active(unit), *spec.Active)
	if d.Invalid != "" {
		return changes
	}
	set("priority", spec.Priority != have.Priority, spec.Priority)
	set("priorityClassName", spec.PriorityClassName != have.PriorityClassName, lifecycle.OrNull(spec.PriorityClassName))
	set("quotaName", spec.QuotaName != have.QuotaName, lifecycle.OrNull(spec.QuotaName))
	set("preemptible", *spec.Preemptible != ptr.Deref(have.Preemptible, true), *spec.Preemptible)
	set("unstoppable", spec.Unstoppable != have.Unstoppable, lifecycle.OrNull(spec.Unstoppable))
	set("maximumExecutionTimeSeconds", !ptr.Equal(spec.MaximumExecutionTimeSeconds, have.MaximumExecutionTimeSeconds), spec.MaximumExecutionTimeSeconds)
	set("expectedRunTimeSeconds", !ptr.Equal(spec.ExpectedRunTimeSeconds, have.ExpectedRunTimeSeconds), spec.ExpectedRunTimeSeconds)
	// Absent and empty are equal here, as for the API server.
	set("podSets", !equality.Semantic.DeepEqual(spec.PodSets, have.PodSets), spec.PodSets)
	set("resource", !equality.Semantic.DeepEqual(spec.Resource, have.Resource), replaceMap(have.Resource, spec.Resource))
	return changes
}

// replaceMap returns the merge patch that turns one map into the other: removed keys
// are null.
func replaceMap[K ~string, V any](have, want map[K]V) map[K]any {
	patch := make(map[K]any, len(want))
	for name := range have {
		patch[name] = nil
	}
	for name, value := range want {
		patch[name] = value
	}
	return patch
}
