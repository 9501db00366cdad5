package arrival

import (
	"maps"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// After is the name of the unit that a unit with these annotations comes after; empty
// where it names none.
func After(annotations map[string]string) string { return annotations[wellknown.AfterAnnotation] }

// Annotate returns the annotations of a unit that comes after the one of the name. Those
// that are given stay as they are.
func Annotate(annotations map[string]string, after string) map[string]string {
	if after == "" {
		return annotations
	}
	all := maps.Clone(annotations)
	if all == nil {
		all = map[string]string{}
	}
	all[wellknown.AfterAnnotation] = after
	return all
}
