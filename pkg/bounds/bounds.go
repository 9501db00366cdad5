// Package bounds checks that a QueueUnit is within the bounds of its CRD.
//
// Any user can create a unit, and the names in it are stored in memory and shown in the status of the quota. The API
// server enforces the bounds, but it may have the schema of an older release, and it does not check objects that were
// stored earlier. So the programs check them too. A unit beyond the bounds is not admitted.
//
// The bounds are far above what jobs need. The name of a resource can be as long as Kubernetes allows. A unit can
// name 64 resources: a pod names a few, and no node has more than a few dozen. It can have 256 pod sets: JobSets,
// TrainJobs and RayClusters can have that many groups of pods, and the unit is still smaller than their templates.
package bounds

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

// The bounds of the CRD. Lengths are in bytes.
const (
	// Resources is the maximum number of different resources that a unit can name.
	Resources = 64
	// ResourceName is the maximum length of the name of a resource: a prefix, a slash and a name.
	ResourceName = 253 + 1 + 63
	// PodSets is the maximum number of pod sets of a unit.
	PodSets = 256
	// PodSetName is the maximum length of the name of a pod set.
	PodSetName = 63
	// ObjectName is the maximum length of the name of a quota, a job, a PriorityClass, or a UID.
	ObjectName = 253

	apiVersion = 317
	kind       = 63
	namespace  = 63
	unset      = 4
	unsetText  = 256
)

// Check returns an error for the first part of the spec that is beyond the bounds. The error names the field, its
// length and the limit.
func Check(spec *v1alpha1.QueueUnitSpec) error {
	ref := &spec.ConsumerRef
	for _, text := range []struct {
		field, value string
		most         int
	}{
		{"spec.consumerRef.apiVersion", ref.APIVersion, apiVersion},
		{"spec.consumerRef.kind", ref.Kind, kind},
		{"spec.consumerRef.namespace", ref.Namespace, namespace},
		{"spec.consumerRef.name", ref.Name, ObjectName},
		{"spec.consumerRef.uid", string(ref.UID), ObjectName},
		{"spec.priorityClassName", spec.PriorityClassName, ObjectName},
		{"spec.quotaName", spec.QuotaName, ObjectName},
	} {
		if err := length(text.field, text.value, text.most); err != nil {
			return err
		}
	}
	if n := len(spec.PodSets); n > PodSets {
		return fmt.Errorf("spec.podSets has %d pod sets, but at most %d are allowed; combine pods of equal templates", n, PodSets)
	}
	named := map[corev1.ResourceName]bool{}
	if err := list("spec.resource", spec.Resource, named); err != nil {
		return err
	}
	for i := range spec.PodSets {
		if err := podSet(fmt.Sprintf("spec.podSets[%d]", i), &spec.PodSets[i], named); err != nil {
			return err
		}
	}
	return nil
}

// Trim returns a copy of the spec within the bounds. It drops names and texts that are too long, the last pod sets if
// there are too many, and the last resources by name.
func Trim(spec *v1alpha1.QueueUnitSpec) *v1alpha1.QueueUnitSpec {
	trimmed := spec.DeepCopy()
	ref := &trimmed.ConsumerRef
	*ref = v1alpha1.ConsumerReference{APIVersion: within(ref.APIVersion, apiVersion), Kind: within(ref.Kind, kind),
		Namespace: within(ref.Namespace, namespace), Name: within(ref.Name, ObjectName), UID: within(ref.UID, ObjectName)}
	trimmed.PriorityClassName = within(trimmed.PriorityClassName, ObjectName)
	trimmed.QuotaName = within(trimmed.QuotaName, ObjectName)
	named := map[corev1.ResourceName]bool{}
	trimList(trimmed.Resource, named)
	trimmed.PodSets = trimmed.PodSets[:min(len(trimmed.PodSets), PodSets)]
	for i := range trimmed.PodSets {
		set := &trimmed.PodSets[i]
		set.Name = within(set.Name, PodSetName)
		set.PriorityClassName = within(set.PriorityClassName, ObjectName)
		set.Unset = nil // only admitted units need it
		trimList(set.Requests, named)
		trimList(set.Limits, named)
	}
	return trimmed
}

// trimList removes resources from the list. named are the resources that were kept so far.
func trimList(list corev1.ResourceList, named map[corev1.ResourceName]bool) {
	for _, key := range slices.Sorted(maps.Keys(list)) {
		if name("", key) != nil || len(named) == Resources && !named[key] {
			delete(list, key)
		} else {
			named[key] = true
		}
	}
}

// within returns the text, or nothing if it is too long.
func within[T ~string](text T, most int) T {
	if len(text) > most {
		return ""
	}
	return text
}

// podSet checks a pod set. named are the resources that the unit names so far.
func podSet(field string, set *v1alpha1.PodSet, named map[corev1.ResourceName]bool) error {
	if err := length(field+".name", set.Name, PodSetName); err != nil {
		return err
	}
	if err := length(field+".priorityClassName", set.PriorityClassName, ObjectName); err != nil {
		return err
	}
	if n := len(set.Unset); n > unset {
		return fmt.Errorf("%s.unset has %d entries, but at most %d are allowed; remove the others", field, n, unset)
	}
	for _, key := range slices.Sorted(maps.Keys(set.Unset)) {
		if err := name(field+".unset", key); err != nil {
			return err
		}
		if err := length(fmt.Sprintf("%s.unset[%s]", field, key), set.Unset[key], unsetText); err != nil {
			return err
		}
	}
	if err := list(field+".requests", set.Requests, named); err != nil {
		return err
	}
	return list(field+".limits", set.Limits, named)
}

// list checks the names of a list and adds them to those that the unit names.
func list(field string, list corev1.ResourceList, named map[corev1.ResourceName]bool) error {
	if n := len(list); n > Resources {
		return fmt.Errorf("%s names %d resources, but at most %d are allowed; request fewer resources", field, n, Resources)
	}
	for _, key := range slices.Sorted(maps.Keys(list)) {
		if err := name(field, key); err != nil {
			return err
		}
		named[key] = true
	}
	if n := len(named); n > Resources {
		return fmt.Errorf("%s and the fields before it name %d different resources, but at most %d are allowed in a unit; request fewer resources", field, n, Resources)
	}
	return nil
}

// name checks the name of a resource.
func name(field string, name corev1.ResourceName) error {
	if n := len(name); n > ResourceName {
		return fmt.Errorf("%s: the name of resource %q... has %d characters, but at most %d are allowed; use a shorter name", field, name[:start], n, ResourceName)
	}
	if faults := validation.IsQualifiedName(string(name)); len(faults) > 0 {
		return fmt.Errorf("%s: %q is not the name of a resource: %s", field, name, faults[0])
	}
	return nil
}

// start is how much of a long text is quoted.
const start = 40

func length(field, value string, most int) error {
	if n := len(value); n > most {
		return fmt.Errorf("%s has %d characters, but at most %d are allowed; use a shorter value; it begins with %q", field, n, most, value[:start])
	}
	return nil
}
