package codec

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/generated/kinds"
)

// labels identify the job of a pod that has lost its controller, or of such an object between a job and its pods.
type labels struct {
	// read are the labels in the order to read them.
	read []kinds.PodLabel
	// names are the labels that hold a name, by the kind of the job.
	names map[string]string
}

var podLabels = newLabels(kinds.PodLabels())

// newLabels sorts the labels. UIDs are read first, because another job may have the same name. The UID of a Job is the
// last UID: the pods of a JobSet's Job also have the label of the Job, which is deleted together with the JobSet.
func newLabels(all []kinds.PodLabel) labels {
	rank := func(l kinds.PodLabel) int {
		switch {
		case !l.IsUID:
			return 2
		case l.Kind == "Job":
			return 1
		}
		return 0
	}
	l := labels{read: slices.Clone(all), names: map[string]string{}}
	slices.SortStableFunc(l.read, func(a, b kinds.PodLabel) int { return cmp.Compare(rank(a), rank(b)) })
	for _, label := range all {
		if !label.IsUID {
			l.names[label.Kind] = label.Key
		}
	}
	return l
}

// LabelOf returns what identifies an object for pods that have lost their controller, or empty if only its UID does or
// nothing does.
func LabelOf(kind, name string) string { return labelled(podLabels.names[kind], name) }

// holderOf returns what identifies the job of a unit for its pods: its UID, and its label if that has its name. For a
// pod group it returns only the label, because the group has the UID of one of its pods.
func holderOf(ref *v1alpha1.ConsumerReference) (owner, label string) {
	label = LabelOf(ref.Kind, ref.Name)
	if strings.HasPrefix(label, wellknown.PodGroupLabel+"=") {
		return label, ""
	}
	return string(ref.UID), label
}

// labelled returns the identifier of the object that the label names. It is not a UID.
func labelled(label, name string) string {
	if label == "" || name == "" {
		return ""
	}
	return label + "=" + name
}

// OwnerOf returns what identifies the owner of the object. For a pod of a group that has passed the gate, this is the
// group. For any other object, it is its controller, else its first owner, else the object that its labels name, else
// empty. orphan is true if labels identify it. Growth pods of a job also pass the gate, but belong to the job.
func OwnerOf(o metav1.Object) (id string, orphan bool) {
	if has := o.GetLabels(); has[wellknown.GatedLabel] == "true" && has[wellknown.PodGroupLabel] != "" && o.GetAnnotations()[wellknown.GrowthAnnotation] == "" {
		return labelled(wellknown.PodGroupLabel, has[wellknown.PodGroupLabel]), false
	}
	if owners := o.GetOwnerReferences(); len(owners) > 0 {
		if controller := metav1.GetControllerOfNoCopy(o); controller != nil {
			return string(controller.UID), false
		}
		return string(owners[0].UID), false
	}
	has := o.GetLabels()
	for _, label := range podLabels.read {
		value := has[label.Key]
		switch {
		case value == "":
		case label.IsUID:
			return value, true
		default:
			return labelled(label.Key, value), true
		}
	}
	return "", false
}
