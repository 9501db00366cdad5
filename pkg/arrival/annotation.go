package arrival

import (
	"maps"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// After returns the name of the unit that a unit with the annotations comes after; empty if they
// name none.
func After(annotations map[string]string) string { return annotations[wellknown.AfterAnnotation] }

// Annotate returns the annotations of a unit that comes after the named unit. It does not change its
// argument.
func Annotate(annotations map[string]string, after string) map[string]string {
	if after == "" {
		return annotations
	}
	all := map[string]string{}
	maps.Copy(all, annotations)
	all[wellknown.AfterAnnotation] = after
	return all
}
