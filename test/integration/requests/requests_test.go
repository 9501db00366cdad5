package requests

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	helpers "k8s.io/component-helpers/resource"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/requests"
)

// compare computes the requests of a template, compares them with the API server, and reports
// whether its pods are valid.
func compare(ctx context.Context, t rapid.TB, n *namespace, spec corev1.PodSpec) (possible bool) {
	t.Helper()
	pod, refused, err := n.create(ctx, spec)
	must(t, err)
	size, err := requests.Pod(&corev1.PodTemplateSpec{Spec: spec}, n.name, n)
	switch {
	case refused != nil && err == nil:
		t.Fatalf("the API server refuses the pod, which would request %v: %v\n%s", size.Requests, refused, text(spec))
	case refused == nil && err != nil:
		t.Fatalf("the API server takes the pod, but it is said to be impossible: %v\n%s", err, text(spec))
	case refused != nil:
		return false
	}
	if real := n.Rules().OfPod(pod); !equality.Semantic.DeepEqual(size.Requests, real) {
		t.Fatalf("the pod requests %v, not %v\n%s\nwas made\n%s", real, size.Requests, text(spec), text(pod.Spec))
	}
	if real := helpers.PodLimits(pod, helpers.PodResourcesOptions{}); !equality.Semantic.DeepEqual(size.Limits, real) {
		t.Fatalf("the limits of the pod are %v, not %v\n%s\nwas made\n%s", real, size.Limits, text(spec), text(pod.Spec))
	}
	return true
}

func text(spec corev1.PodSpec) string {
	data, err := yaml.Marshal(spec)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// defaults are the LimitRanges of the table below.
const defaults = `[{type: Container, default: {cpu: 2, memory: 1Gi}, defaultRequest: {cpu: 500m}, max: {memory: 4Gi}, min: {cpu: 10m}}]`

func TestRequestsOfPodsAreThoseOfTheAPIServer(t *testing.T) {
	n := begin(t, defaults, `[{type: Container, defaultRequest: {ephemeral-storage: 1Gi}}, {type: Pod, max: {cpu: 8}}]`)
	tests := []struct {
		name, spec string
		refused    bool
	}{
		{name: "nothing given", spec: `{containers: [{}]}`},
		{name: "limits only", spec: `{containers: [{resources: {limits: {cpu: 1, memory: 1Gi}}}]}`},
		{name: "requests only", spec: `{containers: [{resources: {requests: {cpu: 1, memory: 1Gi, ephemeral-storage: 2Gi}}}]}`},
		{name: "a request above the default limit", spec: `{containers: [{resources: {requests: {cpu: 3}}}]}`, refused: true},
		{name: "less than thousandths", spec: `{containers: [{resources: {requests: {cpu: 10100u}}}, {resources: {requests: {cpu: 10100u}}}]}`},
		{name: "below the min", spec: `{containers: [{resources: {requests: {cpu: 1m}}}]}`, refused: true},
		{name: "above the max", spec: `{containers: [{resources: {limits: {memory: 5Gi}}}]}`, refused: true},
		{name: "above the max of pods", spec: `{containers: [{resources: {limits: {cpu: 5}}}, {resources: {limits: {cpu: 4}}}]}`, refused: true},
		{name: "init containers and sidecars", spec: `{initContainers: [{restartPolicy: Always}, {resources: {limits: {cpu: 4}}}, {restartPolicy: Always}], containers: [{}, {}]}`},
		{name: "devices", spec: `{containers: [{resources: {limits: {example.com/gpu: 2}}}]}`},
		{name: "devices without a limit", spec: `{containers: [{resources: {requests: {example.com/gpu: 2}}}]}`, refused: true},
		{name: "fewer devices than the limit", spec: `{containers: [{resources: {requests: {example.com/gpu: 1}, limits: {example.com/gpu: 2}}}]}`, refused: true},
		{name: "half a device", spec: `{containers: [{resources: {limits: {example.com/gpu: 500m}}}]}`, refused: true},
		{name: "devices of the pod as a whole", spec: `{resources: {limits: {example.com/gpu: 1}}, containers: [{}]}`, refused: true},
		{name: "a key of a ResourceQuota", spec: `{containers: [{resources: {limits: {requests.example.com/gpu: 1}}}]}`, refused: true},
		{name: "a name that no resource has", spec: `{containers: [{resources: {requests: {gpu: 1}}}]}`, refused: true},
		{name: "devices of a type", spec: `{nodeSelector: {model: h100}, containers: [{resources: {limits: {example.com/gpu: 2}}}, {resources: {limits: {example.com/gpu: 1}}}]}`},
		{name: "a RuntimeClass", spec: `{runtimeClassName: sandbox, containers: [{}]}`},
		{name: "a RuntimeClass of less than thousandths", spec: `{runtimeClassName: tiny, containers: [{}]}`},
		{name: "a RuntimeClass without overhead", spec: `{runtimeClassName: plain, containers: [{}]}`},
		{name: "a RuntimeClass that selects a type of devices", spec: `{runtimeClassName: h100, containers: [{resources: {limits: {example.com/gpu: 2}}}]}`},
		{name: "a RuntimeClass with the same selector", spec: `{runtimeClassName: h100, nodeSelector: {model: h100, disk: ssd}, containers: [{resources: {limits: {example.com/gpu: 2}}}]}`},
		{name: "a RuntimeClass with another selector", spec: `{runtimeClassName: h100, nodeSelector: {model: a100}, containers: [{resources: {limits: {example.com/gpu: 2}}}]}`, refused: true},
		{name: "a RuntimeClass that is not there", spec: `{runtimeClassName: gone, containers: [{}]}`, refused: true},
		{name: "the same overhead", spec: `{runtimeClassName: sandbox, overhead: {cpu: "0.25", memory: 64Mi}, containers: [{}]}`},
		{name: "another overhead", spec: `{runtimeClassName: sandbox, overhead: {cpu: 1}, containers: [{}]}`, refused: true},
		{name: "overhead of a class that has none", spec: `{runtimeClassName: plain, overhead: {cpu: 1}, containers: [{}]}`, refused: true},
		{name: "overhead without a class", spec: `{overhead: {cpu: 1}, containers: [{}]}`, refused: true},
		{name: "the pod as a whole", spec: `{resources: {requests: {cpu: 4}, limits: {cpu: 6, memory: 6Gi}}, containers: [{}, {}]}`},
		{name: "the pod as a whole, for less than its containers", spec: `{resources: {requests: {cpu: 600m}}, containers: [{}, {}]}`, refused: true},
		{name: "the pod as a whole, for less than the default limit", spec: `{resources: {requests: {cpu: 1}, limits: {cpu: 1}}, containers: [{}]}`, refused: true},
		{name: "limits of the pod, and one container that asks", spec: `{resources: {limits: {cpu: 6, memory: 8Gi}}, containers: [{resources: {requests: {cpu: 1}}}]}`},
		{name: "limits of the pod, and defaults that add to one container that asks", spec: `{resources: {limits: {cpu: 6}}, containers: [{resources: {requests: {cpu: 1}}}, {}]}`, refused: true},
		{name: "huge pages, by which the pod as a whole gets the memory of the container that asks", spec: `{resources: {requests: {cpu: 4}}, containers: [{resources: {limits: {memory: 1Gi, hugepages-2Mi: 2Mi}}}, {}]}`, refused: true},
		{name: "huge pages where the pod as a whole says how much memory", spec: `{resources: {requests: {memory: 4Gi}}, containers: [{resources: {limits: {memory: 1Gi, hugepages-2Mi: 2Mi}}}, {}]}`},
		{name: "more huge pages for the pod as a whole", spec: `{resources: {limits: {cpu: 4, hugepages-2Mi: 4Mi}}, containers: [{resources: {limits: {cpu: 1, memory: 1Gi, hugepages-2Mi: 2Mi}}}]}`},
		{name: "huge pages of the only container", spec: `{resources: {requests: {memory: 4Gi}}, containers: [{resources: {limits: {memory: 1Gi, hugepages-2Mi: 2Mi}}}]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var spec corev1.PodSpec
			must(t, yaml.UnmarshalStrict([]byte(test.spec), &spec))
			named(&spec)
			if possible := compare(t.Context(), t, n, spec); possible == test.refused {
				t.Errorf("pods of it can be: %v", possible)
			}
		})
	}
}

func TestRequestsOfRandomPodsAreThoseOfTheAPIServer(t *testing.T) {
	tests := []struct {
		name   string
		ranges []string
	}{
		{"no LimitRange", nil},
		{"defaults", []string{`[{type: Container, default: {cpu: 2, memory: 2Gi}, defaultRequest: {cpu: 1}}]`}},
		{"limits", []string{`[{type: Container, defaultRequest: {cpu: 500m, memory: 256Mi}, min: {cpu: 11m}, max: {memory: 2500M}}, {type: Pod, min: {cpu: 300m}, max: {memory: 7Gi}}]`}},
		{"ratios", []string{`[{type: Container, default: {cpu: 2, memory: 1Gi}, defaultRequest: {cpu: 1}, maxLimitRequestRatio: {cpu: 10}}, {type: Pod, maxLimitRequestRatio: {memory: "2.5"}}]`}},
		{"several LimitRanges", []string{
			`[{type: Container, defaultRequest: {cpu: 500m}}, {type: Pod, max: {memory: 4Gi}}]`,
			`[{type: Container, default: {memory: 1Gi}}, {type: PersistentVolumeClaim, max: {storage: 1Gi}}]`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n, possible, impossible := begin(t, test.ranges...), 0, 0
			try := func(rt rapid.TB, spec corev1.PodSpec) {
				if compare(t.Context(), rt, n, spec) {
					possible++
				} else {
					impossible++
				}
			}
			rapid.Check(t, func(rt *rapid.T) { try(rt, drawSpec(rt)) })
			for seed := range fixedDraws {
				try(t, rapid.Custom(drawSpec).Example(seed))
			}
			t.Logf("%d templates were possible, %d were not", possible, impossible)
			if possible == 0 || impossible == 0 {
				t.Errorf("the templates show nothing")
			}
		})
	}
}

// Which of two defaults a container gets is undefined. The charge may exceed its request, but is never less.
func TestPodsAreChargedNoLessThanAnyOfTheirDefaults(t *testing.T) {
	n := begin(t,
		`[{type: Container, default: {cpu: 4, memory: 1Gi}, defaultRequest: {cpu: 1}}]`,
		`[{type: Container, default: {cpu: 3, memory: 2Gi}, defaultRequest: {cpu: 2}}]`)
	spec := corev1.PodSpec{Containers: make([]corev1.Container, 2)}
	named(&spec)
	size, err := requests.Pod(&corev1.PodTemplateSpec{Spec: spec}, n.name, n)
	must(t, err)
	for range 20 {
		pod, refused, err := n.create(t.Context(), spec)
		if err != nil || refused != nil {
			t.Fatal(err, refused)
		}
		atMost(t, "requests", helpers.PodRequests(pod, helpers.PodResourcesOptions{}), size.Requests)
		atMost(t, "limits", helpers.PodLimits(pod, helpers.PodResourcesOptions{}), size.Limits)
	}
}

func atMost(t *testing.T, what string, real, charged corev1.ResourceList) {
	t.Helper()
	for name, quantity := range real {
		if most := charged[name]; quantity.Cmp(most) > 0 {
			t.Errorf("%s: %s of %s are real, only %s are charged", what, quantity.String(), name, most.String())
		}
	}
}
