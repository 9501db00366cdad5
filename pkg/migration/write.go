package migration

import (
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// WriteYAML writes the objects as documents of a YAML file. The printer of cli-runtime would do the same, but programs in
// the cluster that read manifests must not link it.
func WriteYAML(to io.Writer, objects []*unstructured.Unstructured) error {
	separator := ""
	for _, object := range objects {
		data, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("%s: %w", NameOf(object), err)
		}
		if _, err := fmt.Fprintf(to, "%s%s", separator, data); err != nil {
			return err
		}
		separator = "---\n"
	}
	return nil
}

// WriteJSON writes the objects as a List.
func WriteJSON(to io.Writer, objects []*unstructured.Unstructured) error {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, object := range objects {
		list.Items = append(list.Items, *object)
	}
	data, err := json.MarshalIndent(list.UnstructuredContent(), "", "    ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "%s\n", data)
	return err
}
