package adaptertest

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/test/require"
)

// Fuzz changes the jobs of testdata and their related objects at random: each job must
// result in a unit or a message, never in a panic.
func Fuzz(t *testing.T, adapter framework.Adapter) {
	tests := Cases(t, "testdata", adapter.Kind().Name)
	rapid.Check(t, func(t *rapid.T) {
		test := rapid.SampledFrom(tests).Draw(t, "case")
		data, related := test.Job, test.Related
		if len(related) > 0 && rapid.Bool().Draw(t, "damage the related object") {
			related = damaged(t, related)
		} else {
			data = damaged(t, data)
		}
		got, err := decision.Observe(adapter, data, related, Usual())
		switch {
		case err != nil:
			// The object cannot be decoded. The framework logs that and skips it.
		case got.Invalid == "" && got.Spec.Resource == nil:
			t.Fatalf("the result is neither a unit nor a message for %s with %s", data, related)
		case got.Invalid != "" && *got.Spec.Active:
			t.Fatalf("the unit of an invalid job is active: %s", data)
		}
		negative(t, got, data)
		checkReady(t, adapter.Kind(), got.Job)
	})
}

// damaged returns the object with some values changed.
func damaged(t *rapid.T, data []byte) []byte {
	var object any
	require.NoError(t, json.Unmarshal(data, &object))
	for range rapid.IntRange(1, 6).Draw(t, "damages") {
		object = damage(t, object)
	}
	data, err := json.Marshal(object)
	require.NoError(t, err)
	return data
}

// negative checks that no requested amount is negative.
func negative(t *rapid.T, got decision.Observation, data []byte) {
	for name, quantity := range got.Spec.Resource {
		if quantity.Sign() < 0 {
			t.Fatalf("the request of %s is %s: %s", name, quantity.String(), data)
		}
	}
}

// damage changes one value somewhere inside.
func damage(t *rapid.T, value any) any {
	object, isObject := value.(map[string]any)
	if list, isList := value.([]any); isList && len(list) > 0 && rapid.IntRange(0, 4).Draw(t, "go into the list") > 0 {
		at := rapid.IntRange(0, len(list)-1).Draw(t, "item")
		list[at] = damage(t, list[at])
		return list
	}
	if !isObject || len(object) == 0 || rapid.IntRange(0, 9).Draw(t, "stop here") == 0 {
		return replacement(t)
	}
	key := rapid.SampledFrom(slices.Sorted(maps.Keys(object))).Draw(t, "field")
	switch rapid.IntRange(0, 7).Draw(t, "what") {
	case 0:
		delete(object, key)
	case 1:
		object[key] = nil
	case 2:
		object[rapid.SampledFrom([]string{"WORKER", "x", wellknown.PriorityAnnotation, wellknown.MaxExecTimeAnnotation}).Draw(t, "new field")] = object[key]
	default:
		object[key] = damage(t, object[key])
	}
	return object
}

func replacement(t *rapid.T) any {
	return rapid.SampledFrom([]any{
		nil, true, false, 0, -1, 3, 2147483647, 1e300, "", "true", "1", "-5", "9223372036854775807", "8E", "1e1.5", "x",
		[]any{}, []any{nil}, map[string]any{}, map[string]any{"x": nil},
	}).Draw(t, "value")
}
