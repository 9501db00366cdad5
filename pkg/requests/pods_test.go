package requests

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

func TestARealPodRequestsWhatItsContainersDoAndTheTypesOfItsDevices(t *testing.T) {
	rules := Rules{Types: typesOf(t, someTypes+",example.com/gpu::gpu/any,example.com/npu::gpu/h100")}
	for _, test := range []struct{ name, pod, want string }{
		{"a selected type", `{spec: {nodeSelector: {model: h100}, containers: [{resources: {requests: {cpu: 1, example.com/gpu: 2}}}, {resources: {requests: {cpu: 2}}}]}}`,
			`{cpu: 3, example.com/gpu: 2, gpu/h100: 2}`},
		{"the default type, wherever the pod runs", `{spec: {nodeName: h100, containers: [{resources: {requests: {example.com/gpu: 2}}}]}}`,
			`{example.com/gpu: 2, gpu/any: 2}`},
		{"two resources with one type", `{spec: {nodeSelector: {model: h100}, containers: [{resources: {requests: {example.com/gpu: 1, example.com/npu: 4}}}]}}`,
			`{example.com/gpu: 1, example.com/npu: 4, gpu/h100: 5}`},
		{"sidecars and overhead", `{spec: {overhead: {cpu: 250m}, initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 3}}}], containers: [{resources: {requests: {cpu: 2}}}]}}`,
			`{cpu: 4250m}`},
		{"a container before it shrinks", `{spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}, status: {containerStatuses: [{name: main, allocatedResources: {cpu: 3}, resources: {requests: {cpu: 3}}}]}}`,
			`{cpu: 3}`},
		{"no claim, because what is admitted covers it", `{spec: {resourceClaims: [{name: a, resourceClaimTemplateName: t}, {name: b, resourceClaimName: n}], containers: [{resources: {requests: {cpu: 1}, claims: [{name: a}, {name: b}]}}]}}`,
			`{cpu: 1}`},
		{"the same after its end", `{spec: {containers: [{resources: {requests: {example.com/gpu: 1}}}]}, status: {phase: Succeeded}}`,
			`{example.com/gpu: 1, gpu/any: 1}`},
		{"more than 64 bits hold", `{spec: {containers: [{resources: {requests: {example.com/gpu: 8E, example.com/npu: 8E}}}, {resources: {requests: {example.com/npu: 8E}}}]}}`,
			`{example.com/gpu: 8E, example.com/npu: 16E, gpu/any: 8E, gpu/h100: 16E}`},
		{"nothing", `{spec: {containers: [{}]}}`, `{}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := &corev1.Pod{}
			parse(t, test.pod, pod)
			before := pod.DeepCopy()
			if got, want := rules.OfPod(pod), list(t, test.want); !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if !equality.Semantic.DeepEqual(pod, before) {
				t.Error("the pod was changed")
			}
		})
	}
}
