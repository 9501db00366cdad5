package migration

import (
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// WriteYAML writes the objects as documents of a YAML file.
func WriteYAML(to io.Writer, objects []*unstructured.Unstructured) error {
	for i, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("%s: %w", NameOf(object), err)
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := to.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// WriteJSON writes the objects as a List.
func WriteJSON(to io.Writer, objects []*unstructured.Unstructured) error {
	items := []any{}
	for _, object := range objects {
		items = append(items, object.Object)
	}
	text, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, "", "    ")
	if err != nil {
		return err
	}
	_, err = to.Write(append(text, '\n'))
	return err
}
