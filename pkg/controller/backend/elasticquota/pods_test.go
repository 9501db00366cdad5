package elasticquota

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/requests"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

func TestAPodUsesTheDevicesThatItRequestsByWhateverName(t *testing.T) {
	s := New(tree.Options{}, PodOptions{Rules: requests.Rules{
		Classes: map[string]corev1.ResourceName{"gpu": "example.com/gpu"},
		Types:   map[corev1.ResourceName]requests.Types{"example.com/gpu": {Default: "gpu/any"}},
	}})
	s.names = resources.NewNames()
	rules := s.Pods()
	for _, c := range []struct {
		name, pod string
		ended     bool
		want      string
	}{
		{"the number of jobs, which counts units", `{containers: [{resources: {requests: {cpu: 2, kube-queue/max-jobs: 5}}}]}`, false, "[cpu=2000]"},
		{"no device", `{containers: [{resources: {requests: {cpu: 2}}}]}`, false, "[cpu=2000]"},
		{"the name of the class", `{containers: [{resources: {requests: {"deviceclass.resource.kubernetes.io/gpu": 2}}}]}`, false, "[example.com/gpu=2 gpu/any=2]"},
		{"the resource that it is mapped to", `{containers: [{resources: {requests: {example.com/gpu: 2}}}]}`, false, "[example.com/gpu=2 gpu/any=2]"},
		{"a class that is not mapped", `{containers: [{resources: {requests: {"deviceclass.resource.kubernetes.io/other": 2}}}]}`, false, "[deviceclass.resource.kubernetes.io/other=2]"},
		{"more than 64 bits hold", `{containers: [{resources: {requests: {"deviceclass.resource.kubernetes.io/gpu": 8E, example.com/gpu: 8E}}}]}`, false,
			"[example.com/gpu=9223372036854775807 gpu/any=9223372036854775807]"},
		{"a claim that does not exist", `{resourceClaims: [{name: x, resourceClaimName: gone}], containers: [{}]}`, false, "[]"},
		{"after its end", `{containers: [{resources: {requests: {"deviceclass.resource.kubernetes.io/gpu": 2}}}]}`, true, "[]"},
	} {
		pod := &corev1.Pod{}
		require.NoError(t, yaml.UnmarshalStrict([]byte(c.pod), &pod.Spec))
		vector, shared := rules.Requests(rules.Weigh(pod, c.ended))
		got := []string{}
		for _, a := range vector {
			got = append(got, fmt.Sprintf("%s=%d", s.names.Name(a.ID), a.Value))
		}
		slices.Sort(got)
		if fmt.Sprint(got) != c.want || len(shared) > 0 {
			t.Errorf("%s: it uses %v and %v, want %s", c.name, got, shared, c.want)
		}
	}
	if names := namesOf(s.pods.Rules); !names["example.com/gpu"] || !names["gpu/any"] {
		t.Errorf("the names of the settings are %v", names)
	}
}
