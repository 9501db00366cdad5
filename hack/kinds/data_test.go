package main

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/test/require"
)

// kindOnly is an adapter that has only a kind.
type kindOnly struct {
	framework.Adapter
	kind framework.Kind
}

func (k kindOnly) Kind() framework.Kind { return k.kind }

func aKind(change func(*framework.Kind)) framework.Adapter {
	kind := framework.Kind{
		Name: "widget", Resource: "widgets", SuspendPath: []string{"spec", "policy", "suspend"}, ManagedBy: "example.com/widgets",
		PodLabel:         framework.PodLabel{Key: "example.com/widget"},
		GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
		Fence:            framework.Fence{Frozen: [][]string{{"spec", "template"}}},
		NoPlaces:         "its pods have none",
	}
	change(&kind)
	return kindOnly{kind: kind}
}

func TestTwoExtensionsOfOneResourceAreOneKind(t *testing.T) {
	kinds, err := dataOf([]framework.Adapter{
		aKind(func(*framework.Kind) {}),
		aKind(func(k *framework.Kind) { k.Name, k.Version, k.ManagedBy = "widgetv2", "v2", "example.com/others" }),
	})
	require.NoError(t, err)
	if len(kinds) != 1 || len(kinds[0].Extensions) != 2 || kinds[0].Extensions[1].ManagedBy != "example.com/others" {
		t.Errorf("the data are %+v", kinds)
	}
}

func TestWhatIsSetOrReadIntoIsAMap(t *testing.T) {
	kinds, err := dataOf([]framework.Adapter{aKind(func(k *framework.Kind) {
		k.Maps = [][]string{{"spec", "strategy"}, {"spec", "policy"}}
		k.Sets = []framework.Setting{{Path: []string{"spec", "policy", "clean"}, Value: "All", OlderPath: []string{"spec", "old", "clean"}}}
	})})
	require.NoError(t, err)
	if got := strings.Join(kinds[0].Maps, " "); got != "spec.policy spec.old spec.strategy" {
		t.Errorf("maps are %s", got)
	}
}

func TestWhatThePoliciesCannotSayIsRefused(t *testing.T) {
	set := func(s framework.Setting) func(*framework.Kind) {
		return func(k *framework.Kind) { k.Sets = []framework.Setting{s} }
	}
	none := func(*framework.Kind) {}
	tests := []struct {
		name        string
		first, more func(*framework.Kind)
		want        string
	}{
		{"a field that is set elsewhere", set(framework.Setting{Path: []string{"spec", "other", "field"}, Value: true}), nil, "sets spec.other.field"},
		{"a number", set(framework.Setting{Path: []string{"spec", "field"}, Value: 1}), nil, "neither a string nor a bool"},
		{"a value that counts as unset", set(framework.Setting{Path: []string{"spec", "field"}, Value: false}), nil, "counts as unset"},
		{"a string that is put back", set(framework.Setting{Path: []string{"spec", "field"}, Value: "a", Annotation: "a/b"}), nil, "cannot be restored"},
		{"a suspend field outside of spec", func(k *framework.Kind) { k.SuspendPath = []string{"suspend"} }, nil, "below spec"},
		{"a suspend field that is too deep", func(k *framework.Kind) { k.SuspendPath = []string{"spec", "a", "b", "suspend"} }, nil, "below spec"},
		{"one resource with two suspend fields", none, func(k *framework.Kind) {
			k.Name, k.Version, k.SuspendPath = "widgetv2", "v2", []string{"spec", "suspend"}
		}, "they differ"},
		{"two operators of one version", none, func(k *framework.Kind) {
			k.Name, k.ManagedBy, k.OlderVersions = "widgetv2", "example.com/others", []string{"v1beta1"}
		}, "depends on the version"},
		{"a kind without a label of its pods", func(k *framework.Kind) { k.PodLabel = framework.PodLabel{} }, nil, "no PodLabel"},
		{"a kind without a fence", func(k *framework.Kind) { k.Fence = framework.Fence{} }, nil, "no Fence"},
		{"a kind without places of annotations, and no reason", func(k *framework.Kind) { k.NoPlaces = "" }, nil, "NoPlaces explains"},
		{"an end that is too deep", func(k *framework.Kind) { k.Fence.Ended.Path = []string{"status", "a", "b", "c"} }, nil, "too deep"},
		{"two kinds of one name", none, func(k *framework.Kind) { k.Name, k.Group = "other", "other.example.com" }, "same hold policy"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			adapters := []framework.Adapter{aKind(test.first)}
			if test.more != nil {
				adapters = append(adapters, aKind(test.more))
			}
			_, err := dataOf(adapters)
			require.ErrorSays(t, err, test.want)
		})
	}
}

func TestRulesOfAFence(t *testing.T) {
	kinds, err := dataOf([]framework.Adapter{aKind(func(k *framework.Kind) {
		k.Fence = framework.Fence{
			Frozen: [][]string{{"spec", "a"}, {"metadata", "labels", "example.com/b"}}, EmptyIsUnset: true,
			Valid: []framework.Condition{{Name: "spec.c", Expression: "job.spec.?c.orValue(0) >= 0"}},
		}
	})})
	require.NoError(t, err)
	want := []fenceRule{{
		"object.spec.?a.orValue('') == oldObject.spec.?a.orValue('')\n" +
			"&& object.metadata.?labels[?'example.com/b'].orValue('') == oldObject.metadata.?labels[?'example.com/b'].orValue('')\n" +
			"&& object.spec.?policy.?managedBy.orValue('') == oldObject.spec.?policy.?managedBy.orValue('')",
		"spec.a, metadata.labels.example.com/b, spec.policy.managedBy", false,
	}, {"(object.spec.?c.orValue(0) >= 0)\n|| !(oldObject.spec.?c.orValue(0) >= 0)", "the validity of spec.c", true}}
	if got := kinds[0].Fence.Rules; !slices.Equal(got, want) {
		t.Errorf("the rules are %+v", got)
	}
}

func TestAPartKnowsTheKindsThatHaveIt(t *testing.T) {
	kinds, err := dataOf([]framework.Adapter{
		aKind(func(*framework.Kind) {}),
		aKind(func(k *framework.Kind) {
			k.Name, k.Kind, k.Resource = "gadget", "Gadget", "gadgets"
			k.Parts = []schema.GroupKind{{Group: "example.com", Kind: "Widget"}}
		}),
	})
	require.NoError(t, err)
	if of := kinds[0].PartOf; len(of) != 1 || of[0] != (chartOwner{"Gadget", "example.com", "gadgets"}) {
		t.Errorf("a Widget is a part of %v", of)
	}
	if of := kinds[1].PartOf; len(of) != 0 {
		t.Errorf("a Gadget is a part of %v", of)
	}
}
