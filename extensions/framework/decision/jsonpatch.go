package decision

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Operation of a JSON Patch (RFC 6902). No value is null: a field that is null is removed.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Merge applies a merge patch to a JSON object.
func Merge(object, patch map[string]any) {
	for name, value := range patch {
		inner, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(object, name)
		case isMap:
			Merge(child(object, name), inner)
		default:
			object[name] = value
		}
	}
}

// Join adds the fields of a merge patch to another one.
func Join(patch, more map[string]any) map[string]any {
	joined := maps.Clone(patch)
	if joined == nil {
		joined = map[string]any{}
	}
	for name, value := range more {
		inner, isMap := value.(map[string]any)
		if old, wasMap := joined[name].(map[string]any); isMap && wasMap {
			value = Join(old, inner)
		}
		joined[name] = value
	}
	return joined
}

// OperationsOf returns the JSON Patch that turns was into now. It removes fields that are null in now. It applies only
// to was, so the patch needs the resourceVersion of was.
func OperationsOf(was, now map[string]any) []Operation {
	return operations("", was, now)
}

func operations(path string, was, now any) []Operation {
	switch now := now.(type) {
	case map[string]any:
		if old, same := was.(map[string]any); same {
			return ofMaps(path, old, now)
		}
	case []any:
		if old, same := was.([]any); same && len(old) <= len(now) {
			return ofLists(path, old, now)
		}
	}
	if equality.Semantic.DeepEqual(was, now) {
		return nil
	}
	return []Operation{{Op: "replace", Path: path, Value: withoutNulls(now)}}
}

func ofMaps(path string, was, now map[string]any) []Operation {
	var all []Operation
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if now[name] == nil && was[name] != nil {
			all = append(all, Operation{Op: "remove", Path: path + "/" + escaped(name)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		at := path + "/" + escaped(name)
		switch before, there := was[name]; {
		case now[name] == nil:
		case !there || before == nil:
			if value := withoutNulls(now[name]); value != nil {
				all = append(all, Operation{Op: "add", Path: at, Value: value})
			}
		default:
			all = append(all, operations(at, before, now[name])...)
		}
	}
	return all
}

func ofLists(path string, was, now []any) []Operation {
	var all []Operation
	for i, value := range now {
		if i < len(was) {
			all = append(all, operations(path+"/"+strconv.Itoa(i), was[i], value)...)
			continue
		}
		all = append(all, Operation{Op: "add", Path: path + "/-", Value: withoutNulls(value)})
	}
	return all
}

// withoutNulls returns a value without null fields; nil if an object has no other fields.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, inner := range value {
			if inner = withoutNulls(inner); inner != nil {
				kept[name] = inner
			}
		}
		if len(kept) == 0 && len(value) > 0 {
			return nil
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, inner := range value {
			kept[i] = withoutNulls(inner)
		}
		return kept
	}
	return value
}

// pointer escapes the characters of a name that have a special meaning in a path (RFC 6901).
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// escaped returns a name as a part of a path.
func escaped(name string) string { return pointer.Replace(name) }
