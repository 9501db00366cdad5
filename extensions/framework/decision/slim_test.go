package decision

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"
)

func TestATemplateRetainsWhatIsReadAndNothingElse(t *testing.T) {
	const given = `
metadata: {labels: {a: b}}
spec:
  restartPolicy: OnFailure
  nodeSelector: {model: h100}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]
  tolerations: [{operator: Exists}]
  volumes: [{name: v}]
  serviceAccountName: s
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: model, operator: In, values: [h100]}]}]}
      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: zone, operator: Exists}]}}]
    podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}]}
  containers:
  - {name: main, image: i, command: [c], env: [{name: e}], resources: {limits: {cpu: 1}, claims: [{name: gpu}]}}
`
	const want = `
spec:
  restartPolicy: OnFailure
  nodeSelector: {model: h100}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: model, operator: In, values: [h100]}]}]}
  containers:
  - {name: main, resources: {limits: {cpu: 1}, claims: [{name: gpu}]}}
`
	if got, want := slimmed(t, given), template(t, want); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("the template is %v, want %v", got, want)
	}
}

func TestAnAffinityWithoutAnythingThatIsReadIsRemoved(t *testing.T) {
	for _, affinity := range []string{
		`{}`, `{nodeAffinity: {}}`,
		`{nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}]}}`,
		`{podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}]}}`,
	} {
		if got := slimmed(t, `{spec: {affinity: `+affinity+`}}`); got.Spec.Affinity != nil {
			t.Errorf("of %s remains %v", affinity, got.Spec.Affinity)
		}
	}
}

func template(t *testing.T, text string) *corev1.PodTemplateSpec {
	t.Helper()
	read := &corev1.PodTemplateSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), read); err != nil {
		t.Fatal(err)
	}
	return read
}

func slimmed(t *testing.T, text string) *corev1.PodTemplateSpec {
	t.Helper()
	read := template(t, text)
	slimTemplate(read)
	return read
}
