// Package migration is the shared part of the converters for other queues: input documents, output objects, and
// findings about settings without an equivalent.
//
// Terms. A document is one object of the input, with the place where it was read. A finding is a setting that the
// objects of kube-queue cannot express. A step is something to do by hand, such as setting a value of the chart. A
// fault is input that cannot be converted: then nothing is written.
//
// Invariants. Converting is a pure function of the documents: it reads no cluster and no clock, and equal input gives
// equal output. Each setting of the input is in the output, or in a finding, or is a fault. Nothing is dropped
// silently.
package migration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Document is one object of the input.
type Document struct {
	// Source is the place where the object was read, for messages.
	Source string
	Object *unstructured.Unstructured
}

// Name identifies the object in findings and messages, such as "LocalQueue research/main".
func (d Document) Name() string { return NameOf(d.Object) }

// NameOf identifies an object in findings and messages.
func NameOf(object *unstructured.Unstructured) string {
	name := cmp.Or(object.GetName(), object.GetGenerateName(), "(no name)")
	if namespace := object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return object.GetKind() + " " + name
}

// Finding is a setting that has no exact equivalent.
type Finding struct {
	// Object is the object with the setting, such as "ClusterQueue team-a".
	Object string
	// Field is the path of the setting in the object.
	Field string
	// Why is what kube-queue does differently.
	Why string
	// Instead is what to do instead.
	Instead string
}

// String returns the finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s; instead: %s", f.Object, f.Field, f.Why, f.Instead)
}

// Result is the result of a conversion.
type Result struct {
	// Objects are the objects to apply, in this order.
	Objects []*unstructured.Unstructured
	// Findings are sorted by object.
	Findings []Finding
	// Steps are what to do by hand, in this order.
	Steps []string
	// Values are values of the chart that correspond to settings of the input; nil if there are none.
	Values map[string]any
}

// Find adds a finding.
func (r *Result) Find(object, field, why, instead string) {
	r.Findings = append(r.Findings, Finding{Object: object, Field: field, Why: why, Instead: instead})
}

// SortFindings sorts the findings by object. Those of an object keep their order.
func (r *Result) SortFindings() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.Object, b.Object) })
}

// Step adds something to do by hand.
func (r *Result) Step(format string, args ...any) {
	r.Steps = append(r.Steps, fmt.Sprintf(format, args...))
}

// SetValue sets a value of the chart at the path.
func (r *Result) SetValue(value any, path ...string) {
	if r.Values == nil {
		r.Values = map[string]any{}
	}
	at := r.Values
	for _, key := range path[:len(path)-1] {
		below, is := at[key].(map[string]any)
		if !is {
			below = map[string]any{}
			at[key] = below
		}
		at = below
	}
	at[path[len(path)-1]] = value
}

// InputError reports input that cannot be converted.
type InputError struct {
	// Faults has at least one fault. Each names the object or the place.
	Faults []string
}

// Error returns all faults in one text.
func (e *InputError) Error() string { return strings.Join(e.Faults, "\n") }

// Faults collects what is wrong with the input.
type Faults []string

// Add adds a fault of a document.
func (f *Faults) Add(d Document, format string, args ...any) {
	*f = append(*f, fmt.Sprintf("%s: %s: %s", d.Source, d.Name(), fmt.Sprintf(format, args...)))
}

// Error returns an *InputError with the faults, or nil if there are none.
func (f Faults) Error() error {
	if len(f) == 0 {
		return nil
	}
	return &InputError{Faults: f}
}

// Sorted returns the documents by kind, namespace and name, so that the output does not depend on the order of files.
func Sorted(documents []Document) []Document {
	return slices.SortedStableFunc(slices.Values(documents), func(a, b Document) int {
		return cmp.Or(cmp.Compare(a.Object.GetKind(), b.Object.GetKind()), cmp.Compare(a.Object.GetNamespace(), b.Object.GetNamespace()),
			cmp.Compare(a.Object.GetName(), b.Object.GetName()))
	})
}

// Object returns an object of kube-queue or Kubernetes to apply.
func Object(apiVersion, kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	maps.Copy(object, fields)
	return &unstructured.Unstructured{Object: object}
}
