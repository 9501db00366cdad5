package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// jobsIn returns the jobs in files and folders, in the order in which kubectl applies them.
func jobsIn(root string, manifests []string) ([]job, error) {
	var jobs []job
	for _, manifest := range manifests {
		err := filepath.WalkDir(filepath.Join(root, manifest), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			objects, err := objectsIn(path)
			for _, object := range objects {
				if k := kindOf(object.GroupVersionKind()); k != nil {
					jobs = append(jobs, job{k, object.GetName()})
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

func objectsIn(path string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", path, err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}
