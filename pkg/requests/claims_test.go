package requests

import (
	"fmt"
	"math/big"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/test/require"
)

// claiming has the classes gpu and npu, which are mapped, and nic, which is not counted.
func claiming(t *testing.T, templates, claims string) cluster {
	t.Helper()
	c := clusterOf(t)
	c.Devices.Classes = map[string]corev1.ResourceName{"gpu": "example.com/gpu", "npu": "example.com/npu", "nic": ""}
	parse(t, templates, &c.ClaimTemplates)
	parse(t, claims, &c.NamedClaims)
	return c
}

func TestClaimsOfTemplatesCount(t *testing.T) {
	tests := []struct{ name, requests, want string }{
		{"a count that is not set is 1", `[{name: a, exactly: {deviceClassName: gpu}}]`, `{cpu: 1, example.com/gpu: 1}`},
		{"as is an exact count", `[{name: a, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 3}}]`, `{cpu: 1, example.com/gpu: 3}`},
		{"requests add up", `[{name: a, exactly: {deviceClassName: gpu}}, {name: b, exactly: {deviceClassName: gpu, count: 2}}, {name: c, exactly: {deviceClassName: npu}}]`,
			`{cpu: 1, example.com/gpu: 3, example.com/npu: 1}`},
		{"access for administrators counts nothing, whatever the class", `[{name: a, exactly: {deviceClassName: unknown, allocationMode: All, adminAccess: true}}]`, `{cpu: 1}`},
		{"access that is not for administrators counts", `[{name: a, exactly: {deviceClassName: gpu, adminAccess: false}}]`, `{cpu: 1, example.com/gpu: 1}`},
		{"a class that is not counted counts nothing", `[{name: a, exactly: {deviceClassName: nic, allocationMode: All}}]`, `{cpu: 1}`},
		{"of alternatives the greatest of each resource counts",
			`[{name: a, firstAvailable: [{name: x, deviceClassName: gpu, count: 2}, {name: w, deviceClassName: npu, count: 5}, {name: z, deviceClassName: gpu, count: 4}]}]`,
			`{cpu: 1, example.com/gpu: 4, example.com/npu: 5}`},
		{"alternatives of two requests add up", `[{name: a, firstAvailable: [{name: x, deviceClassName: gpu}]}, {name: b, firstAvailable: [{name: x, deviceClassName: gpu}, {name: w, deviceClassName: nic}]}]`,
			`{cpu: 1, example.com/gpu: 2}`},
		{"a claim may request nothing", `[]`, `{cpu: 1}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := claiming(t, fmt.Sprintf(`{t: {devices: {requests: %s}}}`, test.requests), `{}`)
			tryPod(t, `{resourceClaims: [{name: x, resourceClaimTemplateName: t}], containers: [{resources: {requests: {cpu: 1}, claims: [{name: x}]}}]}`, c, test.want, `{}`)
		})
	}
}

func TestAClaimCountsOnceForAPod(t *testing.T) {
	c := claiming(t, `{t: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, count: 2}}]}}}`, `{n: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, count: 8}}]}}}`)
	for _, test := range []struct{ name, spec, want, shared string }{
		{"however many containers use it", `{resourceClaims: [{name: x, resourceClaimTemplateName: t}], initContainers: [{name: i, resources: {claims: [{name: x}]}}],
			containers: [{name: a, resources: {claims: [{name: x, request: a}]}}, {name: b, resources: {claims: [{name: x}]}}]}`, `{example.com/gpu: 2}`, `{}`},
		{"even if none does", `{resourceClaims: [{name: x, resourceClaimTemplateName: t}], containers: [{name: a}]}`, `{example.com/gpu: 2}`, `{}`},
		{"but two claims of one template are two", `{resourceClaims: [{name: x, resourceClaimTemplateName: t}, {name: w, resourceClaimTemplateName: t}], containers: [{name: a}]}`, `{example.com/gpu: 4}`, `{}`},
		{"and adds to what containers request", `{resourceClaims: [{name: x, resourceClaimTemplateName: t}], containers: [{name: a, resources: {limits: {example.com/gpu: 1}}}]}`, `{example.com/gpu: 3}`, `{}`},
		{"a claim by name is not the pod's own", `{resourceClaims: [{name: x, resourceClaimName: n}, {name: w, resourceClaimName: n}], containers: [{name: a}]}`, `{}`, `{example.com/gpu: 8}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			size, err := Pod(templateOf(t, test.spec), "ns", c)
			require.NoError(t, err)
			shared, err := size.Shared.Requests()
			require.NoError(t, err)
			if want := list(t, test.want); !equality.Semantic.DeepEqual(size.Requests, want) {
				t.Errorf("requests are %v, want %v", size.Requests, want)
			}
			if want := list(t, test.shared); !equality.Semantic.DeepEqual(shared, want) {
				t.Errorf("claims by name request %v, want %v", shared, want)
			}
			if len(size.Limits) > 1 {
				t.Errorf("limits are %v", size.Limits)
			}
		})
	}
}

func TestClaimsHaveTypes(t *testing.T) {
	c := claiming(t, `{t: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, count: 2}}]}}}`, `{n: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, count: 8}}]}}}`)
	c.Devices.Types = typesOf(t, someTypes+",example.com/gpu::gpu/other")
	const claims = `resourceClaims: [{name: x, resourceClaimTemplateName: t}, {name: w, resourceClaimName: n}], containers: [{name: a}]`
	for _, test := range []struct {
		name   string
		models []string
		want   string
	}{
		{"the one that a pod selects", []string{"h100"}, `{example.com/gpu: 10, gpu/h100: 10}`},
		{"the default", []string{"t4"}, `{example.com/gpu: 10, gpu/other: 10}`},
		{"the one that all pods select", []string{"h100", "h100-pcie"}, `{example.com/gpu: 12, gpu/h100: 12}`},
		{"the default if a claim by name is shared by pods of different types", []string{"h100", "a100", "a100"},
			`{example.com/gpu: 14, gpu/h100: 2, gpu/a100: 4, gpu/other: 8}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			total, shared := corev1.ResourceList{}, Shared{}
			for _, model := range test.models {
				size, err := Pod(templateOf(t, fmt.Sprintf(`{nodeSelector: {model: %s}, %s}`, model, claims)), "ns", c)
				if err == nil {
					err = Add(total, size.Requests)
				}
				require.NoError(t, err)
				c.Devices.Share(shared, size.Shared)
			}
			claimed, err := shared.Requests()
			if err == nil {
				err = Add(total, claimed)
			}
			if want := list(t, test.want); err != nil || !equality.Semantic.DeepEqual(total, want) {
				t.Errorf("total is %v, want %v, error %v", total, want, err)
			}
		})
	}
}

func TestClaimsThatCannotBeCountedAreRefused(t *testing.T) {
	const one = `resourceClaims: [{name: x, resourceClaimTemplateName: t}]`
	tests := []struct{ name, spec, requests, err string }{
		{"a class that is not mapped", one, `[{name: a, exactly: {deviceClassName: other}}]`,
			`claim "x": ResourceClaimTemplate "t": request "a": devices of DeviceClass "other" cannot be counted; use another class, or ask an administrator to add this one to setting devices.classes`},
		{"an alternative that is not mapped", one, `[{name: a, firstAvailable: [{name: w, deviceClassName: gpu}, {name: z, deviceClassName: other}]}]`,
			`claim "x": ResourceClaimTemplate "t": request "a": alternative "z": devices of DeviceClass "other" cannot be counted`},
		{"all devices of a node", one, `[{name: a, exactly: {deviceClassName: gpu, allocationMode: All}}]`,
			`claim "x": ResourceClaimTemplate "t": request "a": allocationMode All of DeviceClass "gpu" cannot be counted`},
		{"all devices of a node as an alternative", one, `[{name: a, firstAvailable: [{name: w, deviceClassName: gpu, allocationMode: All}]}]`, `alternative "w": allocationMode All`},
		{"an unknown mode", one, `[{name: a, exactly: {deviceClassName: gpu, allocationMode: Some}}]`, `allocationMode "Some" of DeviceClass "gpu" is not supported`},
		{"a negative count", one, `[{name: a, exactly: {deviceClassName: gpu, count: -1}}]`, `the count of DeviceClass "gpu" must be 1 or more, not -1`},
		{"a request of an unknown form", one, `[{name: a}]`, `request "a": must set exactly one of exactly and firstAvailable`},
		{"a request of two forms", one, `[{name: a, exactly: {deviceClassName: gpu}, firstAvailable: [{name: w, deviceClassName: gpu}]}]`, `must set exactly one of exactly and firstAvailable`},
		{"more than can be counted", one, `[{name: a, exactly: {deviceClassName: gpu, count: 9223372036854775807}}, {name: b, exactly: {deviceClassName: gpu}}]`,
			`claim "x": ResourceClaimTemplate "t": request "b": the amount of example.com/gpu exceeds the maximum`},
		{"more than can be counted with the containers", one + `, containers: [{resources: {limits: {example.com/gpu: 1}}}]`, `[{name: a, exactly: {deviceClassName: gpu, count: 9223372036854775807}}]`,
			`claim "x": ResourceClaimTemplate "t": the amount of example.com/gpu exceeds the maximum`},
		{"a template that is missing", `resourceClaims: [{name: x, resourceClaimTemplateName: gone}]`, `[]`,
			`claim "x": ResourceClaimTemplate "gone" of API resource.k8s.io/v1 does not exist in the namespace; create it`},
		{"a claim that is missing", `resourceClaims: [{name: x, resourceClaimName: t}]`, `[]`, `claim "x": ResourceClaim "t" of API resource.k8s.io/v1 does not exist`},
		{"a claim without a source", `resourceClaims: [{name: x}]`, `[]`, `claim "x" in spec.resourceClaims of the pod must set exactly one of`},
		{"a claim with two sources", `resourceClaims: [{name: x, resourceClaimName: t, resourceClaimTemplateName: t}]`, `[]`, `claim "x" in spec.resourceClaims of the pod must set exactly one of`},
		{"a claim that is listed twice", `resourceClaims: [{name: x, resourceClaimTemplateName: t}, {name: x, resourceClaimTemplateName: t}]`, `[]`, `claim "x" is listed twice`},
		{"a container with a claim that the pod does not have", one + `, initContainers: [{name: first, resources: {claims: [{name: w}]}}]`, `[]`,
			`container "first" uses claim "w", which is missing in spec.resourceClaims of the pod; add it`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := claiming(t, fmt.Sprintf(`{t: {devices: {requests: %s}}}`, test.requests), `{}`)
			_, err := Pod(templateOf(t, "{"+test.spec+"}"), "ns", c)
			require.ErrorSays(t, err, test.err)
		})
	}
}

func TestClaimsByNameThatCannotBeCountedTogetherAreRefused(t *testing.T) {
	c := claiming(t, `{}`, `{a: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, count: 9223372036854775807}}]}}, b: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu}}]}}}`)
	size, err := Pod(templateOf(t, `{resourceClaims: [{name: x, resourceClaimName: a}, {name: w, resourceClaimName: b}]}`), "ns", c)
	require.NoError(t, err)
	_, err = size.Shared.Requests()
	require.ErrorSays(t, err, `ResourceClaim "b": the amount of example.com/gpu exceeds the maximum`)
}

func TestWithoutMappedClassesNoClaimIsLookedUp(t *testing.T) {
	c := clusterOf(t)
	_, err := c.Devices.claimed(&corev1.PodResourceClaim{Name: "x", ResourceClaimTemplateName: ptr.To("t")}, "ns", nil)
	if err == nil || err.Error() != `claim "x": ResourceClaimTemplate "t": devices of claims cannot be counted, because setting devices.classes is empty; ask an administrator to add the DeviceClass of the claim` {
		t.Errorf("error is %v", err)
	}
}

// device is one alternative of a request in the model: a number of devices of a class.
type device struct {
	class string
	count int64
}

// The total of a job is the count of every device of every pod in big integers, or an error.
func TestTheDevicesOfAJobAreCountedOneByOne(t *testing.T) {
	counted := map[string]corev1.ResourceName{"gpu": "example.com/gpu", "npu": "example.com/npu"}
	rapid.Check(t, func(t *rapid.T) {
		c := cluster{ClaimTemplates: map[string]*resourcev1.ResourceClaimSpec{}, NamedClaims: map[string]*resourcev1.ResourceClaimSpec{}}
		c.Devices.Classes = map[string]corev1.ResourceName{"gpu": "example.com/gpu", "npu": "example.com/npu", "nic": ""}
		models := map[string][][]device{}
		for _, name := range []string{"a", "b"} {
			c.ClaimTemplates[name], models["template "+name] = drawClaim(t, "template "+name)
			c.NamedClaims[name], models["claim "+name] = drawClaim(t, "claim "+name)
		}
		want, used, uncountable := exact{}, map[string]bool{}, false
		got, shared := corev1.ResourceList{}, Shared{}
		var failed error
		for range rapid.IntRange(1, 3).Draw(t, "pod sets") {
			spec, count := drawPod(t), rapid.Int32Range(0, 4).Draw(t, "pods")
			pod := exact{} // even without pods, the size must be countable
			for i := range spec.ResourceClaims {
				claim := spec.ResourceClaims[i]
				if claim.ResourceClaimTemplateName != nil {
					pod.add(models["template "+*claim.ResourceClaimTemplateName], 1, counted)
					want.add(models["template "+*claim.ResourceClaimTemplateName], int64(count), counted)
					continue
				}
				alone, name := exact{}, *claim.ResourceClaimName
				alone.add(models["claim "+name], 1, counted)
				uncountable = uncountable || alone.overflows()
				if count > 0 && !used[name] {
					used[name] = true
					want.add(models["claim "+name], 1, counted)
				}
			}
			uncountable = uncountable || pod.overflows()
			if err := addJob(got, shared, spec, count, c); err != nil && failed == nil {
				failed = err
			}
		}
		claimed, err := shared.Requests()
		if err == nil {
			err = Add(got, claimed)
		}
		if failed == nil {
			failed = err
		}
		if (failed != nil) != (uncountable || want.overflows()) {
			t.Fatalf("the error is %v, the exact total %v", failed, want)
		}
		if failed != nil {
			return
		}
		for name, exact := range want {
			have := got[name]
			if have.Value() != exact.Int64() {
				t.Fatalf("%s of %v is %s, not %s", name, models, have.String(), exact)
			}
		}
		if len(got) > len(want) {
			t.Fatalf("the total %v has more resources than %v", got, want)
		}
	})
}

// addJob adds the pods of one set to the total of a job.
func addJob(total corev1.ResourceList, shared Shared, spec *corev1.PodSpec, count int32, c cluster) error {
	size, err := Pod(&corev1.PodTemplateSpec{Spec: *spec}, "ns", c)
	if err != nil {
		return err
	}
	all, err := Times(size.Requests, count)
	if err != nil {
		return err
	}
	if count > 0 {
		c.Devices.Share(shared, size.Shared)
	}
	return Add(total, all)
}

// exact has numbers of devices.
type exact map[corev1.ResourceName]*big.Int

func (e exact) add(claim [][]device, times int64, counted map[string]corev1.ResourceName) {
	for _, alternatives := range claim {
		most := map[corev1.ResourceName]int64{}
		for _, one := range alternatives {
			if name, counts := counted[one.class]; counts {
				most[name] = max(most[name], one.count)
			}
		}
		for name, count := range most {
			if e[name] == nil {
				e[name] = new(big.Int)
			}
			e[name].Add(e[name], new(big.Int).Mul(big.NewInt(count), big.NewInt(times)))
		}
	}
}

func (e exact) overflows() bool {
	for _, count := range e {
		if !count.IsInt64() {
			return true
		}
	}
	return false
}

// drawClaim returns a claim and its model: the alternatives of each request.
func drawClaim(t *rapid.T, label string) (*resourcev1.ResourceClaimSpec, [][]device) {
	counts := rapid.OneOf(rapid.Int64Range(1, 8), rapid.Int64Range(1<<61, 1<<63-1))
	spec, model := &resourcev1.ResourceClaimSpec{}, [][]device{}
	for i := range rapid.IntRange(0, 3).Draw(t, label) {
		request := resourcev1.DeviceRequest{Name: fmt.Sprint("r", i)}
		var alternatives []device
		draw := func() device {
			one := device{rapid.SampledFrom([]string{"gpu", "npu", "nic"}).Draw(t, "class"), counts.Draw(t, "count")}
			alternatives = append(alternatives, one)
			return one
		}
		switch rapid.IntRange(0, 3).Draw(t, "form") {
		case 0:
			request.Exactly = &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", Count: 5, AdminAccess: ptr.To(true)}
		case 1:
			request.Exactly = &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}
			alternatives = []device{{"gpu", 1}}
		case 2:
			one := draw()
			request.Exactly = &resourcev1.ExactDeviceRequest{DeviceClassName: one.class, Count: one.count, AllocationMode: resourcev1.DeviceAllocationModeExactCount}
		default:
			for j := range rapid.IntRange(1, 3).Draw(t, "alternatives") {
				one := draw()
				request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{Name: fmt.Sprint("s", j), DeviceClassName: one.class, Count: one.count})
			}
		}
		spec.Devices.Requests = append(spec.Devices.Requests, request)
		model = append(model, alternatives)
	}
	return spec, model
}

func drawPod(t *rapid.T) *corev1.PodSpec {
	spec := &corev1.PodSpec{}
	for i := range rapid.IntRange(0, 3).Draw(t, "claims of the pod") {
		claim := corev1.PodResourceClaim{Name: fmt.Sprint("c", i)}
		name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
		if rapid.Bool().Draw(t, "by name") {
			claim.ResourceClaimName = &name
		} else {
			claim.ResourceClaimTemplateName = &name
		}
		spec.ResourceClaims = append(spec.ResourceClaims, claim)
	}
	for range rapid.IntRange(0, 2).Draw(t, "containers") {
		container := corev1.Container{}
		for _, claim := range spec.ResourceClaims {
			if rapid.Bool().Draw(t, "uses "+claim.Name) {
				container.Resources.Claims = append(container.Resources.Claims, corev1.ResourceClaim{Name: claim.Name})
			}
		}
		spec.Containers = append(spec.Containers, container)
	}
	return spec
}

// Pods that use the same claim by name give the same types in any order.
func TestTheOrderOfPodSetsDoesNotMatter(t *testing.T) {
	types := typesOf(t, someTypes+",example.com/gpu::gpu/other")
	rapid.Check(t, func(t *rapid.T) {
		rules := Rules{Types: types}
		models := rapid.SliceOfN(rapid.SampledFrom([]string{"h100", "a100", "t4"}), 1, 4).Draw(t, "models")
		total := func(models []string) corev1.ResourceList {
			shared := Shared{}
			for _, model := range models {
				spec := &corev1.PodSpec{NodeSelector: map[string]string{"model": model}}
				rules.Share(shared, Shared{"n": rules.sharedBy(spec, corev1.ResourceList{"example.com/gpu": resource.MustParse("3")})})
			}
			list, err := shared.Requests()
			require.NoError(t, err)
			return list
		}
		if one, other := total(models), total(rapid.Permutation(models).Draw(t, "order")); !equality.Semantic.DeepEqual(one, other) {
			t.Fatalf("%v differs from %v", one, other)
		}
	})
}
