package requests

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestWhoHasASayInAnotherNamespace(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`:                 false,
		`{nodeAffinity: {}}`: false,
		`{podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: k}]}}`:                                                           false,
		`{podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: k, namespaces: [b]}]}}`:                                          true,
		`{podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: k, namespaceSelector: {}}}]}}`: true,
	} {
		affinity := new(corev1.Affinity)
		if err := yaml.UnmarshalStrict([]byte(text), affinity); err != nil {
			t.Fatal(err)
		}
		if got := CrossesNamespaces(affinity); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
