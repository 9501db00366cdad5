package requests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestPodTakesTheDefaultsOfItsNamespace(t *testing.T) {
	const half = `[{type: Container, default: {cpu: 1, memory: 1Gi}, defaultRequest: {cpu: 500m, memory: 512Mi}}]`
	tests := []struct {
		name, spec       string
		ranges           []string
		requests, limits string
	}{
		{"each container gets what it has none of", `{containers: [{name: a}, {name: b, resources: {requests: {cpu: 200m}}}]}`, []string{half},
			`{cpu: 700m, memory: 1Gi}`, `{cpu: 2, memory: 2Gi}`},
		{"init containers and sidecars too", `{initContainers: [{name: x, restartPolicy: Always}, {name: y, resources: {limits: {cpu: 3}}}], containers: [{name: a}]}`, []string{half},
			`{cpu: 3500m, memory: 1Gi}`, `{cpu: 4, memory: 2Gi}`},
		{"a limit of the container is its request before any default", `{containers: [{name: a, resources: {limits: {cpu: 2}}}]}`, []string{half},
			`{cpu: 2, memory: 512Mi}`, `{cpu: 2, memory: 1Gi}`},
		{"a zero is no gap", `{containers: [{name: a, resources: {requests: {cpu: 0}}}]}`, []string{half}, `{cpu: 0, memory: 512Mi}`, `{cpu: 1, memory: 1Gi}`},
		{"limits of pods and claims give no defaults", `{containers: [{name: a}]}`,
			[]string{`[{type: PersistentVolumeClaim, min: {storage: 1Gi}}, {type: Pod, max: {cpu: 1}}, {type: Container, default: {cpu: 1}, defaultRequest: {cpu: 1}}]`}, `{cpu: 1}`, `{cpu: 1}`},
		{"of two defaults the larger one counts", `{containers: [{name: a}]}`,
			[]string{half, `[{type: Container, default: {cpu: 4}, defaultRequest: {cpu: 100m, ephemeral-storage: 1Gi}}]`},
			`{cpu: 500m, memory: 512Mi, ephemeral-storage: 1Gi}`, `{cpu: 4, memory: 1Gi}`},
		{"what the pod requests at pod level takes precedence over the defaults", `{resources: {requests: {cpu: 4}}, containers: [{name: a}]}`, []string{half},
			`{cpu: 4, memory: 512Mi}`, `{cpu: 1, memory: 1Gi}`},
		{"a limit of the pod was its request before there were defaults", `{resources: {limits: {cpu: 4}}, containers: [{name: a}]}`, []string{half},
			`{cpu: 4, memory: 512Mi}`, `{cpu: 4, memory: 1Gi}`},
		{"overhead comes on top", `{runtimeClassName: sandbox, containers: [{name: a}]}`, []string{half}, `{cpu: 750m, memory: 576Mi}`, `{cpu: 1250m, memory: 1088Mi}`},
		{"and is not counted by limits of pods", `{runtimeClassName: sandbox, containers: [{name: a, resources: {limits: {cpu: 1}}}]}`,
			[]string{`[{type: Pod, max: {cpu: 1}}]`}, `{cpu: 1250m, memory: 64Mi}`, `{cpu: 1250m}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tryPod(t, test.spec, clusterOf(t, test.ranges...), test.requests, test.limits)
		})
	}
}

func TestPodObeysTheLimitsOfItsNamespace(t *testing.T) {
	tests := []struct{ name, spec, ranges, err string }{
		{"less than the min", `{containers: [{name: a, resources: {requests: {cpu: 1m}}}]}`, `[{type: Container, min: {cpu: 10m}}]`,
			`LimitRange "r0" rejects the pod: container "a" requests 1m cpu, but the min is 10m`},
		{"no request where there is a min", `{containers: [{name: a}]}`, `[{type: Pod, min: {memory: 1Mi}}]`, `the pod requests no memory, but the min is 1Mi`},
		{"a limit below the min", `{containers: [{name: a, resources: {requests: {cpu: 0}, limits: {cpu: 1m}}}]}`, `[{type: Container, min: {cpu: 2m}}]`, `container "a" requests 0 cpu`},
		{"a limit above the max", `{initContainers: [{name: x, resources: {limits: {cpu: 3}}}]}`, `[{type: Container, max: {cpu: 2}}]`,
			`container "x" has a cpu limit of 3, but the max is 2`},
		{"no limit where there is a max", `{containers: [{name: a, resources: {requests: {cpu: 1}}}]}`, `[{type: Pod, max: {cpu: 2}}]`, `the pod has no cpu limit, but the max is 2`},
		{"containers that together go above the max", `{containers: [{name: a, resources: {limits: {cpu: 1}}}, {name: b, resources: {limits: {cpu: 1500m}}}]}`,
			`[{type: Pod, max: {cpu: 2}}]`, `the pod has a cpu limit of 2500m`},
		{"containers that together request more than the max, though those with a limit stay below", `{containers: [{name: a, resources: {limits: {cpu: 1}}}, {name: b, resources: {requests: {cpu: 2}}}]}`,
			`[{type: Pod, max: {cpu: 2}}]`, `the pod requests 3 cpu, but the max is 2`},
		{"containers with a limit that stay below the min", `{containers: [{name: a, resources: {limits: {cpu: 1}}}, {name: b, resources: {requests: {cpu: 2}}}]}`,
			`[{type: Pod, min: {cpu: 2}}]`, `the pod has a cpu limit of 1, but the min is 2`},
		{"a pod as a whole above the max", `{resources: {limits: {cpu: 3}}, containers: [{name: a}]}`, `[{type: Pod, max: {cpu: 2}}]`, `the pod has a cpu limit of 3`},
		{"a limit too far above its request", `{containers: [{name: a, resources: {requests: {cpu: 1}, limits: {cpu: 3}}}]}`, `[{type: Container, maxLimitRequestRatio: {cpu: 2}}]`,
			`container "a" has a cpu limit of 3 and a request of 1, but the maxLimitRequestRatio is 2`},
		{"a ratio without a limit", `{containers: [{name: a, resources: {requests: {cpu: 1}}}]}`, `[{type: Container, maxLimitRequestRatio: {cpu: 2}}]`, `has a cpu limit of 0 and a request of 1`},
		{"a request above the default limit", `{containers: [{name: a, resources: {requests: {cpu: 2}}}]}`, `[{type: Container, default: {cpu: 1}, defaultRequest: {cpu: 1}}]`,
			`container "a" requests 2 cpu, but its limit is 1; lower the request or raise the limit (a LimitRange may set a default for either)`},
		{"defaults that together go beyond the pod", `{resources: {requests: {cpu: 1}}, containers: [{name: a}, {name: b}]}`, `[{type: Container, defaultRequest: {cpu: 700m}}]`,
			`the containers request 1400m cpu in total`},
		{"defaults beside huge pages, which made the one request for memory that of the pod", `{resources: {requests: {cpu: 4}}, containers: [{name: a, resources: {limits: {memory: 1Gi, hugepages-2Mi: 2Mi}}}, {name: b}]}`,
			`[{type: Container, defaultRequest: {memory: 1Gi}}]`, `the containers request 2Gi memory in total, but spec.resources.requests of the pod is 1Gi`},
		{"just what is allowed", `{containers: [{name: a, resources: {requests: {cpu: 1}, limits: {cpu: 2}}}]}`,
			`[{type: Container, min: {cpu: 1}, max: {cpu: 2}, maxLimitRequestRatio: {cpu: 2}}, {type: Pod, min: {cpu: 1}, max: {cpu: 2}}]`, ``},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Pod(templateOf(t, test.spec), "ns", clusterOf(t, test.ranges))
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error is %v, want %q", err, test.err)
			}
		})
	}
}

// Pod does not change its arguments, and does not depend on the order of LimitRanges, which the API server does not
// keep.
func TestPodDependsOnNoOrderAndChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template, c := drawTemplate(t), drawCluster(t)
		beforeTemplate, beforeRange, beforeOverhead := template.DeepCopy(), copyOf(c.Ranges), c.Overheads[""].DeepCopy()
		size, err := Pod(template, "ns", c)
		if !equality.Semantic.DeepEqual(template, beforeTemplate) || !equality.Semantic.DeepEqual(c.Ranges, beforeRange) ||
			!equality.Semantic.DeepEqual(c.Overheads[""], beforeOverhead) {
			t.Fatalf("something was changed")
		}
		slices.Reverse(c.Ranges)
		again, againErr := Pod(template, "ns", c)
		if (err == nil) != (againErr == nil) || !equality.Semantic.DeepEqual(size, again) {
			t.Fatalf("%v, %v became %v, %v", size, err, again, againErr)
		}
	})
}

func drawTemplate(t *rapid.T) *corev1.PodTemplateSpec {
	template := &corev1.PodTemplateSpec{}
	for i := range rapid.IntRange(0, 3).Draw(t, "containers") {
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Resources: drawResources(t)})
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "init containers") {
		template.Spec.InitContainers = append(template.Spec.InitContainers, corev1.Container{Name: fmt.Sprintf("i%d", i), Resources: drawResources(t)})
	}
	if rapid.Bool().Draw(t, "as a whole") {
		whole := drawResources(t)
		template.Spec.Resources = &whole
	}
	if rapid.Bool().Draw(t, "class") {
		template.Spec.RuntimeClassName = new(string)
	}
	return template
}

// drawCluster draws one RuntimeClass without a name, and LimitRanges.
func drawCluster(t *rapid.T) cluster {
	c := cluster{Overheads: map[string]corev1.ResourceList{"": drawAmounts(t)}}
	for range rapid.IntRange(0, 3).Draw(t, "ranges") {
		c.Ranges = append(c.Ranges, &corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Default: drawAmounts(t), DefaultRequest: drawAmounts(t), Max: drawAmounts(t),
		}}}})
	}
	return c
}

func copyOf(ranges []*corev1.LimitRange) []*corev1.LimitRange {
	copies := make([]*corev1.LimitRange, len(ranges))
	for i, limitRange := range ranges {
		copies[i] = limitRange.DeepCopy()
	}
	return copies
}

func drawResources(t *rapid.T) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: drawAmounts(t), Limits: drawAmounts(t)}
}

// drawAmounts draws similar amounts, some of which do not fit an int64.
func drawAmounts(t *rapid.T) corev1.ResourceList {
	texts := rapid.SampledFrom([]string{"", "", "", "0", "100m", "1", "1500m", "2", "3", "1e-4", "9e30"})
	amounts := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "hugepages-2Mi"} {
		if text := texts.Draw(t, string(name)); text != "" {
			amounts[name] = resource.MustParse(text)
		}
	}
	return amounts
}
