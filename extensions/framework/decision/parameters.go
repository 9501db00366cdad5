package decision

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// ParametersOf are the parameters of a job or unit. Where both prefixes name one
// parameter, ours counts.
func ParametersOf(object metav1.Object) map[string]string {
	var parameters map[string]string
	put := func(prefix string) {
		for key, value := range object.GetAnnotations() {
			if name, is := strings.CutPrefix(key, prefix); is {
				if parameters == nil {
					parameters = map[string]string{}
				}
				parameters[wellknown.ParameterPrefix+name] = value
			}
		}
	}
	put(wellknown.KueueParameterPrefix)
	put(wellknown.ParameterPrefix)
	return parameters
}

// ParameterChanges are the annotations of a merge patch that brings a unit's
// parameters in step; nil when they are.
func (w *Want) ParameterChanges(unit metav1.Object) map[string]any {
	have := ParametersOf(unit)
	if maps.Equal(have, w.Parameters) {
		return nil
	}
	changes := map[string]any{}
	for key := range have {
		changes[key] = nil
	}
	for key, value := range w.Parameters {
		changes[key] = value
	}
	return changes
}
