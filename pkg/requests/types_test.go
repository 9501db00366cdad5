package requests

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/test/require"
)

// typesOf reads types; the test fails if they are invalid.
func typesOf(t *testing.T, text string) map[corev1.ResourceName]Types {
	t.Helper()
	types, err := ParseTypes(text)
	require.NoError(t, err)
	return types
}

const someTypes = "example.com/gpu:model=h100:gpu/h100,example.com/gpu:model=h100-pcie:gpu/h100,example.com/gpu:model=a100:gpu/a100," +
	"example.com/gpu:pool=fast:gpu/h100,example.com/gpu:pool=slow:gpu/a100"

func TestTheTypeIsThatOfAllNodesThatThePodAllows(t *testing.T) {
	tests := []struct{ name, spec, want string }{
		{"a node selector", `{nodeSelector: {model: h100}}`, "gpu/h100"},
		{"a node selector of another label", `{nodeSelector: {zone: h100}}`, ""},
		{"a model without a type", `{nodeSelector: {model: t4}}`, ""},
		{"nothing", `{}`, ""},
		{"one value", `[[{key: model, operator: In, values: [a100]}]]`, "gpu/a100"},
		{"values of one type", `[[{key: model, operator: In, values: [h100, h100-pcie]}]]`, "gpu/h100"},
		{"values of two types", `[[{key: model, operator: In, values: [h100, a100]}]]`, ""},
		{"a value of no type", `[[{key: model, operator: In, values: [h100, t4]}]]`, ""},
		{"terms of one type", `[[{key: model, operator: In, values: [h100]}], [{key: model, operator: In, values: [h100-pcie]}]]`, "gpu/h100"},
		{"terms of two types", `[[{key: model, operator: In, values: [h100]}], [{key: model, operator: In, values: [a100]}]]`, ""},
		{"a term without a model", `[[{key: model, operator: In, values: [h100]}], [{key: zone, operator: In, values: [a]}]]`, ""},
		{"a term of two types before one of a single type", `[[{key: model, operator: In, values: [h100, a100]}], [{key: model, operator: In, values: [h100]}]]`, ""},
		{"an empty term, which matches no node", `[[{key: model, operator: In, values: [h100]}], []]`, "gpu/h100"},
		{"a term that contradicts itself", `[[{key: model, operator: In, values: [h100]}], [{key: model, operator: In, values: [a100]}, {key: model, operator: In, values: [t4]}]]`, "gpu/h100"},
		{"no term", `[]`, ""},
		{"another operator", `[[{key: model, operator: NotIn, values: [a100]}]]`, ""},
		{"two labels of one type", `[[{key: model, operator: In, values: [h100]}, {key: pool, operator: In, values: [fast]}]]`, "gpu/h100"},
		{"two labels of different types", `[[{key: model, operator: In, values: [h100]}, {key: pool, operator: In, values: [slow]}]]`, ""},
		{"a label that leaves the type open, and one that does not", `[[{key: model, operator: In, values: [h100, a100]}, {key: pool, operator: In, values: [slow]}]]`, "gpu/a100"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, preset := range []string{"", "gpu/other"} {
				rules := Rules{Types: typesOf(t, someTypes)}
				types := rules.Types["example.com/gpu"]
				types.Default = corev1.ResourceName(preset)
				rules.Types["example.com/gpu"] = types
				want := corev1.ResourceName(test.want)
				if want == "" {
					want = types.Default
				}
				if got := rules.typeOf("example.com/gpu", specOf(t, test.spec)); got != want {
					t.Errorf("with default %q the type is %q, want %q", preset, got, want)
				}
			}
		})
	}
}

// specOf reads the spec of a pod, or the terms of its required node affinity.
func specOf(t *testing.T, text string) *corev1.PodSpec {
	t.Helper()
	if text[0] == '[' {
		var terms [][]corev1.NodeSelectorRequirement
		parse(t, text, &terms)
		selector := &corev1.NodeSelector{}
		for _, expressions := range terms {
			selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: expressions})
		}
		return &corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}}
	}
	spec := &corev1.PodSpec{}
	parse(t, text, spec)
	return spec
}

func TestATypeIsChargedInAdditionToItsResource(t *testing.T) {
	c := clusterOf(t)
	c.Devices.Types = typesOf(t, someTypes+",example.com/npu::gpu/h100,example.com/fpga::other/fpga")
	for _, test := range []struct{ name, spec, want string }{
		{"the selected type", `{nodeSelector: {model: h100}, containers: [{resources: {limits: {cpu: 1, example.com/gpu: 2}}}]}`,
			`{cpu: 1, example.com/gpu: 2, gpu/h100: 2}`},
		{"two resources with one type", `{nodeSelector: {model: h100}, containers: [{resources: {limits: {example.com/gpu: 2, example.com/npu: 3}}}]}`,
			`{example.com/gpu: 2, example.com/npu: 3, gpu/h100: 5}`},
		{"a type that the pod also requests", `{nodeSelector: {model: h100}, containers: [{resources: {limits: {example.com/gpu: 2, gpu/h100: 1}}}]}`,
			`{example.com/gpu: 2, gpu/h100: 3}`},
		{"no type for nothing", `{nodeSelector: {model: h100}, containers: [{resources: {limits: {example.com/gpu: 0, example.com/fpga: 0}}}]}`,
			`{example.com/gpu: 0, example.com/fpga: 0}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			template := templateOf(t, test.spec)
			before := template.DeepCopy()
			size, err := Pod(template, "ns", c)
			require.NoError(t, err)
			if want := list(t, test.want); !equality.Semantic.DeepEqual(size.Requests, want) {
				t.Errorf("requests are %v, want %v", size.Requests, want)
			}
			if !equality.Semantic.DeepEqual(template, before) {
				t.Error("the template was changed")
			}
		})
	}
}

func TestTheNodeSelectorOfTheRuntimeClassSelectsATypeToo(t *testing.T) {
	c := clusterOf(t)
	c.Devices.Types = typesOf(t, someTypes)
	c.Overheads["h100"], c.NodeSelectors = nil, map[string]map[string]string{"h100": {"model": "h100", "zone": "a"}}
	for _, test := range []struct{ name, selector, want, err string }{
		{"of a pod without a selector", `{}`, `{example.com/gpu: 2, gpu/h100: 2}`, ""},
		{"of a pod with the same", `{model: h100}`, `{example.com/gpu: 2, gpu/h100: 2}`, ""},
		{"in addition to that of the pod", `{pool: slow}`, `{example.com/gpu: 2}`, ""},
		{"but not in contradiction to the pod", `{model: a100}`, "",
			`spec.nodeSelector of the pod has model=a100, but RuntimeClass "h100" selects nodes with model=h100; remove the label from spec.nodeSelector, or use another RuntimeClass`},
	} {
		t.Run(test.name, func(t *testing.T) {
			template := templateOf(t, `{runtimeClassName: h100, nodeSelector: `+test.selector+`, containers: [{resources: {limits: {example.com/gpu: 2}}}]}`)
			before := template.DeepCopy()
			size, err := Pod(template, "ns", c)
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Errorf("error is %v", err)
				}
				return
			}
			if want := list(t, test.want); err != nil || !equality.Semantic.DeepEqual(size.Requests, want) {
				t.Errorf("requests are %v, want %v, error %v", size.Requests, want, err)
			}
			if !equality.Semantic.DeepEqual(template, before) {
				t.Error("the template was changed")
			}
		})
	}
}

func TestTypesThatCannotBeCountedAreRefused(t *testing.T) {
	c := clusterOf(t)
	c.Devices.Types = typesOf(t, "a.com/a::gpu/x,b.com/b::gpu/x")
	_, err := Pod(templateOf(t, `{containers: [{resources: {limits: {a.com/a: 8E, b.com/b: 7E}}}]}`), "ns", c)
	if err == nil || err.Error() != "the amount of gpu/x exceeds the maximum of 9223372036854775807; request less" {
		t.Errorf("error is %v", err)
	}
}

func TestDeclaredRequestsHaveTheDefaultType(t *testing.T) {
	declared := list(t, `{example.com/gpu: 4}`)
	got, err := Declared(declared, Rules{Types: typesOf(t, someTypes+",example.com/gpu::gpu/other")})
	if want := list(t, `{example.com/gpu: 4, gpu/other: 4}`); err != nil || !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %v, want %v, error %v", got, want, err)
	}
	if len(declared) != 1 {
		t.Errorf("the declared requests were changed to %v", declared)
	}
}

// The scheduler's own matcher determines which nodes a pod allows. With only operator In, the type is exact. With other
// operators, a type is never wrong.
func TestATypeIsThatOfEachNodeThatTheSchedulerAllows(t *testing.T) {
	models := map[string]corev1.ResourceName{"h100": "gpu/h100", "h100-pcie": "gpu/h100", "a100": "gpu/a100", "t4": ""}
	values := []string{"h100", "h100-pcie", "a100", "t4"}
	types := typesOf(t, "example.com/gpu:model=h100:gpu/h100,example.com/gpu:model=h100-pcie:gpu/h100,example.com/gpu:model=a100:gpu/a100")
	rapid.Check(t, func(t *rapid.T) {
		onlyIn := rapid.Bool().Draw(t, "only operator In")
		spec := drawSelection(t, values, onlyIn)
		allowed := map[corev1.ResourceName]bool{}
		for _, value := range append(values, "none") {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: value, Labels: map[string]string{"model": value}}}
			if value == "none" {
				node.Labels = nil
			}
			matches, err := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec}).Match(node)
			require.NoError(t, err)
			if matches {
				allowed[models[value]] = true
			}
		}
		want := corev1.ResourceName("")
		if len(allowed) == 1 {
			for only := range allowed {
				want = only
			}
		}
		got := Rules{Types: types}.typeOf("example.com/gpu", spec)
		if onlyIn && got != want || got != "" && len(allowed) > 0 && got != want {
			t.Fatalf("the type is %q, want %q: the nodes have %v", got, want, allowed)
		}
	})
}

func drawSelection(t *rapid.T, values []string, onlyIn bool) *corev1.PodSpec {
	spec := &corev1.PodSpec{}
	if rapid.Bool().Draw(t, "node selector") {
		spec.NodeSelector = map[string]string{"model": rapid.SampledFrom(values).Draw(t, "value")}
	}
	if !rapid.Bool().Draw(t, "affinity") {
		return spec
	}
	operators := []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn}
	if !onlyIn {
		operators = append(operators, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist)
	}
	selector := &corev1.NodeSelector{}
	for range rapid.IntRange(0, 3).Draw(t, "terms") {
		term := corev1.NodeSelectorTerm{}
		for range rapid.IntRange(0, 3).Draw(t, "expressions") {
			expression := corev1.NodeSelectorRequirement{Key: "model", Operator: rapid.SampledFrom(operators).Draw(t, "operator")}
			if expression.Operator == corev1.NodeSelectorOpIn || expression.Operator == corev1.NodeSelectorOpNotIn {
				expression.Values = rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, 3, rapid.ID).Draw(t, "values")
			}
			term.MatchExpressions = append(term.MatchExpressions, expression)
		}
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, term)
	}
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
	return spec
}
