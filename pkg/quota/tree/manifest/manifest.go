// Package manifest reads the tree of an ElasticQuotaTree in the form that users write: with quantities as strings or
// numbers, and null for fields that are not set. Reading never fails: what cannot be read becomes a fault of its
// node.
package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/spelling"
)

// Root reads spec.root of an ElasticQuotaTree. The schema describes only the upper levels of a tree, so the levels
// below them can contain anything. All faults are reported together.
func Root(object *unstructured.Unstructured) tree.Node {
	root, found, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "root")
	if err != nil || !found {
		// Because of the name, only this fault is reported.
		return tree.Node{Name: tree.RootField, Faults: []string{"the root node is missing; set it"}}
	}
	return decoder{}.node(root)
}

// fields are the fields of a node.
var fields = []string{"name", "namespaces", "min", "max", "attributes", "children"}

// decoder reads nodes.
type decoder struct {
	// strict makes an unknown field a fault; otherwise it is a warning.
	strict bool
}

func (r decoder) node(value any) tree.Node {
	object, ok := value.(map[string]any)
	if !ok {
		return tree.Node{Faults: []string{"expected a node, an object with a name; got " + jsonType(value)}}
	}
	d := nodeDecoder{fields: object}
	r.findUnknown(&d)
	d.node.Name, _ = d.text("name", object["name"])
	d.list("namespaces", func(field string, v any) {
		if namespace, ok := d.text(field, v); ok {
			d.node.Namespaces = append(d.node.Namespaces, namespace)
		}
	})
	d.node.Min = d.quantities("min")
	d.node.Max = d.quantities("max")
	d.table("attributes", func(key string, v any) {
		if text, ok := d.text("attributes: "+key, v); ok {
			if d.node.Attributes == nil {
				d.node.Attributes = map[string]string{}
			}
			d.node.Attributes[key] = text
		}
	})
	d.list("children", func(_ string, v any) {
		d.node.Children = append(d.node.Children, r.node(v))
	})
	return d.node
}

// findUnknown reports unknown fields.
func (r decoder) findUnknown(d *nodeDecoder) {
	for _, field := range slices.Sorted(maps.Keys(d.fields)) {
		if slices.Contains(fields, field) {
			continue
		}
		hint := "; remove it, a node has only " + strings.Join(fields, ", ")
		if meant := spelling.Nearest(field, fields); meant != "" {
			hint = fmt.Sprintf("; did you mean %q?", meant)
		}
		if r.strict {
			d.fault("unknown field %q%s", field, hint)
		} else {
			d.node.Warnings = append(d.node.Warnings, fmt.Sprintf("unknown field %q is ignored%s", field, hint))
		}
	}
}

// jsonType returns the type of a value for a message.
func jsonType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}

type nodeDecoder struct {
	fields map[string]any
	node   tree.Node
}

func (d *nodeDecoder) fault(format string, args ...any) {
	d.node.Faults = append(d.node.Faults, fmt.Sprintf(format, args...))
}

func (d *nodeDecoder) text(field string, value any) (string, bool) {
	if value == nil {
		return "", false
	}
	text, ok := value.(string)
	if !ok {
		d.fault("%s: expected a string, got %s", field, jsonType(value))
	}
	return text, ok
}

func (d *nodeDecoder) list(field string, each func(field string, value any)) {
	value := d.fields[field]
	if value == nil {
		return
	}
	elements, ok := value.([]any)
	if !ok {
		d.fault("%s: expected a list, got %s", field, jsonType(value))
	}
	for i, element := range elements {
		each(fmt.Sprintf("%s[%d]", field, i), element)
	}
}

func (d *nodeDecoder) table(field string, each func(key string, value any)) {
	value := d.fields[field]
	if value == nil {
		return
	}
	entries, ok := value.(map[string]any)
	if !ok {
		d.fault("%s: expected an object, got %s", field, jsonType(value))
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		each(key, entries[key])
	}
}

// quantities reads quantities that are strings or numbers. Null means not set.
func (d *nodeDecoder) quantities(field string) map[string]resource.Quantity {
	var list map[string]resource.Quantity
	d.table(field, func(name string, value any) {
		var text string
		switch v := value.(type) {
		case nil:
			return
		case string:
			text = v
		case int64:
			text = strconv.FormatInt(v, 10)
		case float64:
			text = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			d.fault("%s: %s: expected a quantity, got %s", field, name, jsonType(value))
			return
		}
		q, err := resources.Parse(text)
		if err != nil {
			d.fault("%s: %s: %v", field, name, err)
			return
		}
		if list == nil {
			list = map[string]resource.Quantity{}
		}
		list[name] = q
	})
	return list
}
