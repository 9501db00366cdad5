package migration

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
)

// WriteYAML writes the objects as documents of a YAML file.
func WriteYAML(to io.Writer, objects []*unstructured.Unstructured) error {
	printer := &printers.YAMLPrinter{}
	for _, object := range objects {
		if err := printer.PrintObj(object, to); err != nil {
			return fmt.Errorf("%s: %w", NameOf(object), err)
		}
	}
	return nil
}

// WriteJSON writes the objects as a List.
func WriteJSON(to io.Writer, objects []*unstructured.Unstructured) error {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, object := range objects {
		list.Items = append(list.Items, *object)
	}
	return (&printers.JSONPrinter{}).PrintObj(list, to)
}
