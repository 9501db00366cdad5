package requests

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

func list(t *testing.T, text string) corev1.ResourceList {
	t.Helper()
	var l corev1.ResourceList
	require.NoError(t, yaml.Unmarshal([]byte(text), &l))
	return l
}

func parse(t *testing.T, text string, into any) {
	t.Helper()
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), into))
}

// cluster has one namespace and RuntimeClasses.
type cluster struct {
	Overheads map[string]corev1.ResourceList
	// NodeSelectors are those of the RuntimeClasses.
	NodeSelectors map[string]map[string]string
	// Tolerations are those of the RuntimeClasses with node selectors.
	Tolerations []corev1.Toleration
	Ranges      []*corev1.LimitRange
	Devices     Rules
	// ClaimTemplates and NamedClaims are those of the namespace.
	ClaimTemplates, NamedClaims map[string]*resourcev1.ResourceClaimSpec
}

func (c cluster) RuntimeClass(name string) (*nodev1.RuntimeClass, bool) {
	overhead, found := c.Overheads[name]
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if overhead != nil {
		class.Overhead = &nodev1.Overhead{PodFixed: overhead}
	}
	if selector := c.NodeSelectors[name]; selector != nil {
		class.Scheduling = &nodev1.Scheduling{NodeSelector: selector, Tolerations: c.Tolerations}
	}
	return class, found
}

func (c cluster) LimitRanges(string) []*corev1.LimitRange { return c.Ranges }

func (c cluster) Rules() Rules { return c.Devices }

func (c cluster) ClaimTemplate(_, name string) (*resourcev1.ResourceClaimSpec, bool) {
	claim, found := c.ClaimTemplates[name]
	return claim, found
}

func (c cluster) Claim(_, name string) (*resourcev1.ResourceClaimSpec, bool) {
	claim, found := c.NamedClaims[name]
	return claim, found
}

// clusterOf has the classes "sandbox" and "tiny", the class "plain" without overhead, and LimitRanges "r0", "r1" and so
// on with the given items.
func clusterOf(t *testing.T, ranges ...string) cluster {
	t.Helper()
	c := cluster{Overheads: map[string]corev1.ResourceList{"sandbox": list(t, `{cpu: 250m, memory: 64Mi}`), "tiny": list(t, `{cpu: 100u}`), "plain": nil}}
	for i, text := range ranges {
		limitRange := &corev1.LimitRange{}
		limitRange.Name = fmt.Sprintf("r%d", i)
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &limitRange.Spec.Limits))
		c.Ranges = append(c.Ranges, limitRange)
	}
	return c
}

func templateOf(t *testing.T, spec string) *corev1.PodTemplateSpec {
	t.Helper()
	template := &corev1.PodTemplateSpec{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &template.Spec))
	return template
}

func TestPod(t *testing.T) {
	tests := []struct {
		name, spec       string
		requests, limits string
	}{
		{"a pod without containers requests nothing", `{containers: []}`, `{}`, `{}`},
		{"containers add up", `{containers: [{name: a, resources: {requests: {cpu: 1}}}, {name: b, resources: {requests: {cpu: 500m, memory: 1Gi}}}]}`,
			`{cpu: 1500m, memory: 1Gi}`, `{}`},
		{"a limit without a request is the request", `{containers: [{name: a, resources: {limits: {cpu: 2, nvidia.com/gpu: 1}, requests: {cpu: 1}}}]}`,
			`{cpu: 1, nvidia.com/gpu: 1}`, `{cpu: 2, nvidia.com/gpu: 1}`},
		{"this applies to each container separately", `{containers: [{name: a, resources: {limits: {cpu: 2}}}, {name: b, resources: {requests: {cpu: 1}}}]}`,
			`{cpu: 3}`, `{cpu: 2}`},
		{"the largest init container counts where it is larger", `{initContainers: [{name: x, resources: {requests: {cpu: 3, memory: 1Mi}}}, {name: y, resources: {requests: {cpu: 2}}}],
			containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}}}]}`, `{cpu: 3, memory: 1Gi}`, `{}`},
		{"a sidecar runs beside the others", `{initContainers: [{name: x, restartPolicy: Always, resources: {limits: {cpu: 1}}}], containers: [{name: a, resources: {requests: {cpu: 1}}}]}`,
			`{cpu: 2}`, `{cpu: 1}`},
		{"each container's amounts are rounded up to thousandths", `{containers: [{name: a, resources: {requests: {cpu: 100u}}}, {name: b, resources: {requests: {cpu: 100u}}}]}`,
			`{cpu: 2m}`, `{}`},
		{"limits too", `{containers: [{name: a, resources: {limits: {cpu: 100u}}}, {name: b, resources: {limits: {cpu: 100u}}}]}`, `{cpu: 2m}`, `{cpu: 2m}`},
		{"and overhead", `{runtimeClassName: tiny, containers: [{name: a, resources: {requests: {cpu: 1}}}]}`, `{cpu: 1001m}`, `{}`},
		{"the RuntimeClass adds its overhead", `{runtimeClassName: sandbox, containers: [{name: a, resources: {requests: {cpu: 1}}}]}`,
			`{cpu: 1250m, memory: 64Mi}`, `{}`},
		{"to limits too, where there are any", `{runtimeClassName: sandbox, containers: [{name: a, resources: {limits: {cpu: 1}}}]}`,
			`{cpu: 1250m, memory: 64Mi}`, `{cpu: 1250m}`},
		{"a pod may say the same itself", `{runtimeClassName: sandbox, overhead: {memory: 64Mi, cpu: "0.25"}, containers: [{name: a, resources: {requests: {cpu: 1}}}]}`,
			`{cpu: 1250m, memory: 64Mi}`, `{}`},
		{"a RuntimeClass may add nothing", `{runtimeClassName: plain, containers: [{name: a, resources: {requests: {cpu: 1}}}]}`, `{cpu: 1}`, `{}`},
		{"what the pod requests at pod level takes precedence over its containers", `{resources: {requests: {cpu: 4}}, containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}, requests: {cpu: 1}}}]}`,
			`{cpu: 4, nvidia.com/gpu: 1}`, `{nvidia.com/gpu: 1}`},
		{"a limit of the pod is its request when no container asks", `{resources: {limits: {cpu: 4}}, containers: [{name: a}]}`, `{cpu: 4}`, `{cpu: 4}`},
		{"but what containers request comes before the limit of the pod", `{resources: {limits: {cpu: 4}}, containers: [{name: a, resources: {requests: {cpu: 1}}}]}`,
			`{cpu: 1}`, `{cpu: 4}`},
		{"huge pages of containers are those of the pod as well", `{resources: {requests: {cpu: 4}}, containers: [{name: a, resources: {limits: {cpu: 1, hugepages-2Mi: 2Mi}}}]}`,
			`{cpu: 4, hugepages-2Mi: 2Mi}`, `{cpu: 1, hugepages-2Mi: 2Mi}`},
		{"but for huge pages the limit of the pod counts", `{resources: {limits: {cpu: 1, hugepages-2Mi: 4Mi}}, containers: [{name: a, resources: {limits: {cpu: 1, hugepages-2Mi: 2Mi}}}]}`,
			`{cpu: 1, hugepages-2Mi: 4Mi}`, `{cpu: 1, hugepages-2Mi: 4Mi}`},
		{"the largest amount that can be counted is counted", `{containers: [{name: a, resources: {requests: {memory: "9223372036854775807"}}}]}`,
			`{memory: "9223372036854775807"}`, `{}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { tryPod(t, test.spec, clusterOf(t), test.requests, test.limits) })
	}
}

func tryPod(t *testing.T, spec string, c cluster, wantRequests, wantLimits string) {
	t.Helper()
	template := templateOf(t, spec)
	before := template.DeepCopy()
	size, err := Pod(template, "ns", c)
	require.NoError(t, err)
	if want := list(t, wantRequests); !equality.Semantic.DeepEqual(size.Requests, want) {
		t.Errorf("requests are %v, want %v", size.Requests, want)
	}
	if want := list(t, wantLimits); !equality.Semantic.DeepEqual(size.Limits, want) {
		t.Errorf("limits are %v, want %v", size.Limits, want)
	}
	if !equality.Semantic.DeepEqual(template, before) {
		t.Errorf("the template was changed")
	}
}

func TestPodRefuses(t *testing.T) {
	tests := []struct{ name, spec, err string }{
		{"a negative request", `{containers: [{name: main, resources: {requests: {cpu: -1}}}]}`, `container "main": the amount of cpu must be 0 or more, not -1`},
		{"a negative limit of an init container", `{initContainers: [{name: first, resources: {limits: {memory: -1Mi}}}]}`, `container "first"`},
		{"a negative overhead", `{overhead: {cpu: -1}}`, "overhead"},
		{"a negative request of the pod as a whole", `{resources: {requests: {cpu: -1}}}`, "the pod: the amount of cpu must be 0 or more"},
		{"a sum that cannot be counted", `{containers: [{resources: {requests: {memory: 8E}}}, {resources: {requests: {memory: 7E}}}]}`, "the amount of memory exceeds the maximum"},
		{"so much CPU that its thousandths cannot be counted", `{containers: [{resources: {requests: {cpu: 10P}}}]}`, "the amount of cpu exceeds the maximum"},
		{"a RuntimeClass that is not there", `{runtimeClassName: gone, containers: [{}]}`, `RuntimeClass "gone" does not exist`},
		{"another overhead than that of the RuntimeClass", `{runtimeClassName: sandbox, overhead: {cpu: 1}}`, `differs from the overhead of RuntimeClass "sandbox"`},
		{"an overhead where the RuntimeClass has none", `{runtimeClassName: plain, overhead: {cpu: 1}}`, `differs from the overhead of RuntimeClass "plain"`},
		{"an overhead without a RuntimeClass", `{overhead: {cpu: 100m}}`, "remove spec.overhead"},
		{"a request above its limit", `{containers: [{name: main, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]}`, `container "main" requests 2 cpu, but its limit is 1`},
		{"containers that go beyond the pod", `{resources: {requests: {cpu: 1}}, containers: [{resources: {requests: {cpu: 700m}}}, {resources: {requests: {cpu: 700m}}}]}`,
			"the containers request 1400m cpu in total, but spec.resources.requests of the pod is 1"},
		{"a container that goes beyond the limit of the pod", `{resources: {limits: {cpu: 1}}, containers: [{name: main, resources: {requests: {cpu: 1}, limits: {cpu: 2}}}]}`,
			`container "main" has a cpu limit of 2, but spec.resources.limits of the pod is 1`},
		{"a name that no resource has", `{containers: [{name: main, resources: {requests: {gpu: 1}}}]}`, `container "main" cannot request resource "gpu"; containers can request cpu, memory`},
		{"a key of a ResourceQuota", `{containers: [{name: main, resources: {limits: {requests.nvidia.com/gpu: 1}}}]}`, `container "main" cannot request resource "requests.nvidia.com/gpu"`},
		{"devices of the pod as a whole", `{resources: {limits: {nvidia.com/gpu: 1}}}`, `the pod cannot request resource "nvidia.com/gpu"`},
		{"a device without a limit", `{containers: [{name: main, resources: {requests: {nvidia.com/gpu: 1}}}]}`,
			`container "main" requests 1 nvidia.com/gpu without the same limit, which Kubernetes requires for this resource; set the limit to the request`},
		{"fewer devices than the limit", `{containers: [{name: main, resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}}]}`, `requests 1 nvidia.com/gpu without the same limit`},
		{"huge pages without a limit", `{containers: [{name: main, resources: {requests: {cpu: 1, hugepages-2Mi: 2Mi}}}]}`, `requests 2Mi hugepages-2Mi without the same limit`},
		{"half a device", `{containers: [{name: main, resources: {limits: {nvidia.com/gpu: 500m}}}]}`, `container "main": the amount of nvidia.com/gpu must be an integer, not 500m`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Pod(templateOf(t, test.spec), "ns", clusterOf(t))
			require.ErrorSays(t, err, test.err)
		})
	}
}

// The product is that of big integers, or an error.
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

func TestPodsAreCreatedWithTheTolerationsOfTheirRuntimeClass(t *testing.T) {
	c := clusterOf(t)
	c.NodeSelectors = map[string]map[string]string{"sandbox": {"sandboxed": "true"}}
	parse(t, `[{key: own, operator: Exists}, {key: sandboxed, operator: Exists}]`, &c.Tolerations)
	template := templateOf(t, `{runtimeClassName: sandbox, nodeSelector: {zone: a}, tolerations: [{key: own, operator: Exists}, {key: own, operator: Exists, effect: NoExecute}], containers: [{name: main}]}`)
	spec, err := Created(template, "ns", c)
	require.NoError(t, err)
	var want corev1.PodSpec
	parse(t, `{nodeSelector: {zone: a, sandboxed: "true"}, tolerations: [{key: own, operator: Exists}, {key: own, operator: Exists, effect: NoExecute}, {key: sandboxed, operator: Exists}]}`, &want)
	if !equality.Semantic.DeepEqual(spec.NodeSelector, want.NodeSelector) || !equality.Semantic.DeepEqual(spec.Tolerations, want.Tolerations) {
		t.Errorf("the pods have %v and %v", spec.NodeSelector, spec.Tolerations)
	}
	if len(template.Spec.Tolerations) != 2 {
		t.Error("the template was changed")
	}
}

// A real pod is charged whole bytes, so a job requests whole bytes for each of its pods.
func TestAJobRequestsWhatItsPodsAreCharged(t *testing.T) {
	c := clusterOf(t)
	template := templateOf(t, `{containers: [{name: a, resources: {requests: {cpu: 100u, memory: 1.1Gi, ephemeral-storage: 0.1Gi}}}]}`)
	size, err := Pod(template, "ns", c)
	require.NoError(t, err)
	all, err := Times(size.Requests, 4)
	require.NoError(t, err)
	spec, err := Created(template, "ns", c)
	require.NoError(t, err)
	for name, quantity := range c.Devices.OfPod(&corev1.Pod{Spec: *spec}) {
		admitted, err := resources.RequestValue(string(name), all[name])
		if charged := 4 * resources.UsedValue(string(name), quantity); err != nil || admitted != charged {
			t.Errorf("%s: %d is admitted (%v), but 4 pods are charged %d", name, admitted, err, charged)
		}
	}
}
