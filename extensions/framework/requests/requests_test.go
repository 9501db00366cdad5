package requests

import (
	"math"
	"math/big"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func list(t *testing.T, text string) corev1.ResourceList {
	t.Helper()
	var l corev1.ResourceList
	if err := yaml.Unmarshal([]byte(text), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPod(t *testing.T) {
	tests := []struct {
		name, spec       string
		requests, limits string
	}{
		{"a pod without containers asks for nothing", `{}`, `{}`, `{}`},
		{"containers add up", `{containers: [{resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 500m, memory: 1Gi}}}]}`,
			`{cpu: 1500m, memory: 1Gi}`, `{}`},
		{"a limit without a request is the request", `{containers: [{resources: {limits: {cpu: 2, nvidia.com/gpu: 1}, requests: {cpu: 1}}}]}`,
			`{cpu: 1, nvidia.com/gpu: 1}`, `{cpu: 2, nvidia.com/gpu: 1}`},
		{"that is so in each container by itself", `{containers: [{resources: {limits: {cpu: 2}}}, {resources: {requests: {cpu: 1}}}]}`,
			`{cpu: 3}`, `{cpu: 2}`},
		{"the largest init container counts where it is larger", `{initContainers: [{resources: {requests: {cpu: 3, memory: 1Mi}}}, {resources: {requests: {cpu: 2}}}],
			containers: [{resources: {requests: {cpu: 1, memory: 1Gi}}}]}`, `{cpu: 3, memory: 1Gi}`, `{}`},
		{"a sidecar runs beside the others", `{initContainers: [{restartPolicy: Always, resources: {limits: {cpu: 1}}}], containers: [{resources: {requests: {cpu: 1}}}]}`,
			`{cpu: 2}`, `{cpu: 1}`},
		{"overhead is added", `{overhead: {cpu: 100m}, containers: [{resources: {requests: {cpu: 1}}}]}`, `{cpu: 1100m}`, `{}`},
		{"what the pod as a whole asks for stands above its containers", `{resources: {requests: {cpu: 4}}, containers: [{resources: {requests: {cpu: 1, nvidia.com/gpu: 1}}}]}`,
			`{cpu: 4, nvidia.com/gpu: 1}`, `{}`},
		{"a limit of the pod is its request when no container asks", `{resources: {limits: {cpu: 4}}, containers: [{}]}`, `{cpu: 4}`, `{cpu: 4}`},
		{"but what containers ask for comes before the limit of the pod", `{resources: {limits: {cpu: 4}}, containers: [{resources: {requests: {cpu: 1}}}]}`,
			`{cpu: 1}`, `{cpu: 4}`},
		{"the largest amount that can be counted is counted", `{containers: [{resources: {requests: {memory: "9223372036854775807"}}}]}`,
			`{memory: "9223372036854775807"}`, `{}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			template := &corev1.PodTemplateSpec{}
			if err := yaml.Unmarshal([]byte(test.spec), &template.Spec); err != nil {
				t.Fatal(err)
			}
			before := template.DeepCopy()
			requests, limits, err := Pod(template)
			if err != nil {
				t.Fatal(err)
			}
			if want := list(t, test.requests); !equality.Semantic.DeepEqual(requests, want) {
				t.Errorf("requests are %v, want %v", requests, want)
			}
			if want := list(t, test.limits); !equality.Semantic.DeepEqual(limits, want) {
				t.Errorf("limits are %v, want %v", limits, want)
			}
			if !equality.Semantic.DeepEqual(template, before) {
				t.Errorf("the template was changed")
			}
		})
	}
}

func TestPodRefuses(t *testing.T) {
	tests := []struct{ name, spec, err string }{
		{"a negative request", `{containers: [{name: main, resources: {requests: {cpu: -1}}}]}`, `container "main" asks for a negative amount of cpu: -1`},
		{"a negative limit of an init container", `{initContainers: [{name: first, resources: {limits: {memory: -1Mi}}}]}`, `container "first"`},
		{"a negative overhead", `{overhead: {cpu: -1}}`, "overhead"},
		{"a negative request of the pod as a whole", `{resources: {requests: {cpu: -1}}}`, "the pod asks"},
		{"a sum that cannot be counted", `{containers: [{resources: {requests: {memory: 8E}}}, {resources: {requests: {memory: 7E}}}]}`, "more memory than can be counted"},
		{"so much CPU that its thousandths cannot be counted", `{containers: [{resources: {requests: {cpu: 10P}}}]}`, "more cpu than can be counted"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			template := &corev1.PodTemplateSpec{}
			if err := yaml.Unmarshal([]byte(test.spec), &template.Spec); err != nil {
				t.Fatal(err)
			}
			if _, _, err := Pod(template); err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("error is %v, want %q", err, test.err)
			}
		})
	}
}

// The product is that of whole numbers of any size, or an error.
func TestTimesNeverWraps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.Int64Range(0, math.MaxInt64).Draw(t, "one")
		count := rapid.Int32Range(0, math.MaxInt32).Draw(t, "count")
		exact := new(big.Int).Mul(big.NewInt(one), big.NewInt(int64(count)))
		product, err := Times(corev1.ResourceList{"memory": *resource.NewQuantity(one, resource.BinarySI)}, count)
		if exact.IsInt64() != (err == nil) {
			t.Fatalf("%d x %d: %v, error %v", one, count, product, err)
		}
		got := product["memory"]
		if err == nil && got.Value() != exact.Int64() {
			t.Fatalf("%d x %d came to %s", one, count, got.String())
		}
	})
}

func TestAddAddsAndDoesNotWrap(t *testing.T) {
	total := corev1.ResourceList{}
	for range 2 {
		if err := Add(total, list(t, `{cpu: 250m, memory: 4E}`)); err != nil {
			t.Fatalf("%v: %v", total, err)
		}
		total["memory"] = resource.MustParse("4E")
	}
	if cpu := total["cpu"]; cpu.String() != "500m" {
		t.Errorf("cpu is %s", cpu.String())
	}
	if err := Add(total, list(t, `{memory: 6E}`)); err == nil {
		t.Errorf("4E and 6E came to %v", total)
	}
}
