package decision

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// ParametersOf returns the provisioning parameters of a job or unit. If a parameter is
// set with both prefixes, our own prefix takes precedence.
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

// ParameterChanges returns the annotations of a merge patch that updates the
// parameters of a unit; nil if they are up to date.
func (d *Desired) ParameterChanges(unit metav1.Object) map[string]any {
	have := ParametersOf(unit)
	if maps.Equal(have, d.Parameters) {
		return nil
	}
	return replaceMap(have, d.Parameters)
}
