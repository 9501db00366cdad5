package bounds

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/require"
)

// longest is the longest name of a resource.
var longest = strings.Repeat("p", 63) + "." + strings.Repeat("p", 63) + "." + strings.Repeat("p", 63) + "." + strings.Repeat("p", 61) + "/" + strings.Repeat("n", 63)

func listOf(names ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, name := range names {
		list[corev1.ResourceName(name)] = resource.MustParse("1")
	}
	return list
}

func numbered(from, to int) (names []string) {
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf("a.example/n%d", i))
	}
	return names
}

// largest returns a unit at all bounds.
func largest() *v1alpha1.QueueUnitSpec {
	spec := &v1alpha1.QueueUnitSpec{
		ConsumerRef: v1alpha1.ConsumerReference{APIVersion: strings.Repeat("a", 317), Kind: strings.Repeat("k", 63),
			Namespace: strings.Repeat("n", 63), Name: strings.Repeat("n", 253), UID: types.UID(strings.Repeat("u", 253))},
		PriorityClassName: strings.Repeat("p", 253), QuotaName: strings.Repeat("q", 253),
		Resource: listOf(append(numbered(0, 63), longest)...),
	}
	for i := range 256 {
		spec.PodSets = append(spec.PodSets, v1alpha1.PodSet{Name: fmt.Sprintf("%063d", i), Count: 1,
			Requests: listOf(longest), Limits: listOf(numbered(0, 63)...), PriorityClassName: strings.Repeat("p", 253),
			Unset: map[corev1.ResourceName]string{"requests.cpu": strings.Repeat("c", 256), "limits.cpu": "", "requests.memory": "", "limits.memory": ""}})
	}
	return spec
}

func TestAUnitAtTheBoundsIsWithinThem(t *testing.T) {
	if len(longest) != ResourceName {
		t.Fatalf("the longest name has %d characters", len(longest))
	}
	require.NoError(t, Check(largest()))
}

func TestAUnitBeyondABoundReportsFieldLengthAndLimit(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		change func(*v1alpha1.QueueUnitSpec)
		want   string
	}{
		{func(s *v1alpha1.QueueUnitSpec) { s.ConsumerRef.APIVersion += "a" }, "spec.consumerRef.apiVersion has 318 characters, but at most 317 are allowed; "},
		{func(s *v1alpha1.QueueUnitSpec) { s.ConsumerRef.Kind = long(64) }, "spec.consumerRef.kind has 64 characters, but at most 63 are allowed; "},
		{func(s *v1alpha1.QueueUnitSpec) { s.ConsumerRef.Namespace = long(64) }, "spec.consumerRef.namespace has 64 characters, but at most 63 are allowed; "},
		{func(s *v1alpha1.QueueUnitSpec) { s.ConsumerRef.Name = long(254) }, "spec.consumerRef.name has 254 characters, but at most 253 are allowed; "},
		{func(s *v1alpha1.QueueUnitSpec) { s.ConsumerRef.UID = types.UID(long(720_000)) }, "spec.consumerRef.uid has 720000 characters, but at most 253 are allowed; "},
		{func(s *v1alpha1.QueueUnitSpec) { s.PriorityClassName = long(254) }, "spec.priorityClassName has 254 characters, but at most 253 are allowed; "},
		{func(s *v1alpha1.QueueUnitSpec) { s.QuotaName = long(254) }, "spec.quotaName has 254 characters, but at most 253 are allowed; "},
		{func(s *v1alpha1.QueueUnitSpec) { s.Resource = listOf(long(720_000)) }, "spec.resource: the name of resource \"" + long(40) + "\"... has 720000 characters, but at most 317 are allowed; "},
		{func(s *v1alpha1.QueueUnitSpec) { s.Resource = listOf(longest + "n") }, "has 318 characters, but at most 317 are allowed; "},
		{func(s *v1alpha1.QueueUnitSpec) { s.Resource = listOf("a.example/" + long(64)) }, "spec.resource: \"a.example/" + long(64) + "\" is not the name of a resource: "},
		{func(s *v1alpha1.QueueUnitSpec) { s.Resource = listOf("no name") }, "spec.resource: \"no name\" is not the name of a resource: "},
		{func(s *v1alpha1.QueueUnitSpec) { s.Resource = listOf(numbered(0, 65)...) }, "spec.resource names 65 resources, but at most 64 are allowed; "},
		{func(s *v1alpha1.QueueUnitSpec) { s.PodSets[255].Limits = listOf("a.example/other") }, "spec.podSets[255].limits and the fields before it name 65 different resources, but at most 64 are allowed in a unit; "},
		{func(s *v1alpha1.QueueUnitSpec) { s.PodSets[1].Requests = listOf(numbered(0, 65)...) }, "spec.podSets[1].requests names 65 resources, but at most 64 are allowed; "},
		{func(s *v1alpha1.QueueUnitSpec) { s.PodSets = append(s.PodSets, v1alpha1.PodSet{Name: "more"}) }, "spec.podSets has 257 pod sets, but at most 256 are allowed; "},
		{func(s *v1alpha1.QueueUnitSpec) { s.PodSets[2].Name = long(64) }, "spec.podSets[2].name has 64 characters, but at most 63 are allowed; "},
		{func(s *v1alpha1.QueueUnitSpec) { s.PodSets[2].PriorityClassName = long(254) }, "spec.podSets[2].priorityClassName has 254 characters, but at most 253 are allowed; "},
		{func(s *v1alpha1.QueueUnitSpec) { s.PodSets[2].Unset["cpu"] = "" }, "spec.podSets[2].unset has 5 entries, but at most 4 are allowed; "},
		{func(s *v1alpha1.QueueUnitSpec) { s.PodSets[2].Unset["limits.cpu"] = long(257) }, "spec.podSets[2].unset[limits.cpu] has 257 characters, but at most 256 are allowed; "},
		{func(s *v1alpha1.QueueUnitSpec) {
			s.PodSets[2].Unset = map[corev1.ResourceName]string{corev1.ResourceName(long(318)): ""}
		}, "spec.podSets[2].unset: the name of resource \"" + long(40) + "\"... has 318 characters, but at most 317 are allowed; "},
	} {
		spec := largest()
		c.change(spec)
		err := Check(spec)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
			continue
		}
		if len(err.Error()) > 600 {
			t.Errorf("the sentence has %d characters: %v", len(err.Error()), err)
		}
		if err := Check(Trim(spec)); err != nil {
			t.Errorf("after it was trimmed: %v", err)
		}
	}
}

func TestWhatIsWithinTheBoundsIsNotTrimmed(t *testing.T) {
	spec := largest()
	spec.Resource["no name"] = resource.MustParse("1")
	trimmed := Trim(spec)
	if len(trimmed.Resource) != 64 || len(trimmed.PodSets) != 256 || len(trimmed.PodSets[255].Limits) != 63 || len(trimmed.PodSets[255].Requests) != 1 ||
		trimmed.ConsumerRef != spec.ConsumerRef || trimmed.QuotaName != spec.QuotaName {
		t.Errorf("left are %d resources and %d pod sets", len(trimmed.Resource), len(trimmed.PodSets))
	}
	if len(spec.Resource) != 65 {
		t.Error("the unit itself was changed")
	}
}

// The API server rejects exactly what these constants do not allow.
func TestTheBoundsAreThoseOfTheCRD(t *testing.T) {
	text, err := os.ReadFile("../../charts/kube-queue/files/crds/scheduling.x-k8s.io_queueunits.yaml")
	require.NoError(t, err)
	var crd map[string]any
	require.NoError(t, yaml.Unmarshal(text, &crd))
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	at := func(path ...string) map[string]any {
		t.Helper()
		found, ok, _ := unstructured.NestedMap(versions[0].(map[string]any), append([]string{"schema", "openAPIV3Schema", "properties", "spec", "properties"}, path...)...)
		if !ok {
			t.Fatalf("the CRD has no %v", path)
		}
		return found
	}
	expect := func(field map[string]any, keyword string, want int) {
		t.Helper()
		if fmt.Sprint(field[keyword]) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %d", keyword, field[keyword], want)
		}
	}
	rule := fmt.Sprintf("self.all(name, size(name) <= %d)", ResourceName)
	set := func(path ...string) map[string]any {
		return at(append([]string{"podSets", "items", "properties"}, path...)...)
	}
	for name, list := range map[string]map[string]any{"resource": at("resource"), "requests": set("requests"), "limits": set("limits"), "unset": set("unset")} {
		if !strings.Contains(fmt.Sprint(list["x-kubernetes-validations"]), rule) {
			t.Errorf("%s has no rule %s", name, rule)
		}
	}
	for _, list := range []map[string]any{at("resource"), set("requests"), set("limits")} {
		expect(list, "maxProperties", Resources)
	}
	expect(at("podSets"), "maxItems", PodSets)
	expect(set("name"), "maxLength", PodSetName)
	expect(set("unset"), "maxProperties", unset)
	ref := []string{"consumerRef", "properties"}
	for field, want := range map[string]int{"apiVersion": apiVersion, "kind": kind, "namespace": namespace, "name": ObjectName, "uid": ObjectName} {
		expect(at(append(ref, field)...), "maxLength", want)
	}
	for _, field := range []string{"quotaName", "priorityClassName"} {
		expect(at(field), "maxLength", ObjectName)
	}
	expect(set("priorityClassName"), "maxLength", ObjectName)
}
