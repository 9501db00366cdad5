// Package kinds has one manifest per kind of job, for the tests of all kinds. It is the example for users,
// examples/NAME.yaml, where NAME is the name of the kind in --enabled-extensions, with a merge patch for what only
// tests need.
//
// The patch is a document in the test data of the adapter (extensions/*/testdata):
//
//	example:
//	  file: the name of the file in examples
//	  total: {...}     what all pods of the job request together
//	  batchJobs: n     how many batch Jobs the job creates; optional
//	  endless: true    the job runs until it is suspended or deleted; optional
//	  patch: {...}     optional
//
// The patch sets the annotation localcluster.kube-queue.dev/run-time of pod templates, which is how long a pod runs
// (see test/localcluster). "never" is for pods that end only with their job. If all pods end by themselves, no run
// time is needed.
package kinds

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/examples"
	"kube-queue.dev/kube-queue/extensions"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/registry"
)

// example is how tests use an example.
type example struct {
	File      string              `json:"file"`
	Total     corev1.ResourceList `json:"total"`
	BatchJobs int                 `json:"batchJobs"`
	Endless   bool                `json:"endless"`
	Patch     json.RawMessage     `json:"patch"`
}

// Sample is a kind of job with its manifest.
type Sample struct {
	framework.Kind
	// Total is what one job requests.
	Total corev1.ResourceList
	// BatchJobs is the number of batch Jobs that a job creates. They are not queued themselves.
	BatchJobs int
	// Endless reports that jobs run until they are suspended or deleted.
	Endless bool

	manifest *unstructured.Unstructured
}

// All returns the samples of all kinds, in the registry's order.
func All() ([]Sample, error) {
	used, err := usedExamples()
	if err != nil {
		return nil, err
	}
	var all []Sample
	for _, adapter := range registry.All() {
		sample, err := read(adapter.Kind(), used)
		if err != nil {
			return nil, fmt.Errorf("examples/%s: %w", File(adapter.Kind()), err)
		}
		all = append(all, sample)
	}
	return all, nil
}

// File is the name of the kind's manifest.
func File(kind framework.Kind) string { return kind.Name + ".yaml" }

// usedExamples returns the documents in the test data that describe an example, by file name.
func usedExamples() (map[string]example, error) {
	used := map[string]example{}
	err := fs.WalkDir(extensions.TestData, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".yaml" {
			return err
		}
		data, err := extensions.TestData.ReadFile(name)
		if err != nil {
			return err
		}
		for _, document := range bytes.Split(data, []byte("\n---\n")) {
			if !bytes.HasPrefix(document, []byte("example:\n")) {
				continue
			}
			var one struct {
				Example example `json:"example"`
			}
			if err := yaml.UnmarshalStrict(document, &one); err != nil {
				return fmt.Errorf("extensions/%s: %w", name, err)
			}
			file := one.Example.File
			if _, twice := used[file]; twice {
				return fmt.Errorf("extensions/%s: example %q is in the test data twice", name, file)
			}
			used[file] = one.Example
		}
		return nil
	})
	return used, err
}

func read(kind framework.Kind, used map[string]example) (Sample, error) {
	text, err := examples.Files.ReadFile(File(kind))
	if err != nil {
		return Sample{}, err
	}
	use, found := used[File(kind)]
	if !found {
		return Sample{}, errors.New("no document \"example\" in the test data of an adapter has this file")
	}
	if len(use.Total) == 0 {
		return Sample{}, errors.New("the document \"example\" in the test data has no total")
	}
	data, err := merged(text, use.Patch)
	if err != nil {
		return Sample{}, err
	}
	job := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &job.Object); err != nil {
		return Sample{}, err
	}
	if job.GroupVersionKind() != kind.GroupVersionKind {
		return Sample{}, fmt.Errorf("the manifest is a %s, not a %s", job.GroupVersionKind(), kind.GroupVersionKind)
	}
	return Sample{Kind: kind, Total: use.Total, BatchJobs: use.BatchJobs, Endless: use.Endless, manifest: job}, nil
}

// merged applies a JSON merge patch to YAML. The result is JSON.
func merged(text, patch []byte) ([]byte, error) {
	data, err := yaml.YAMLToJSON(text)
	if err != nil || patch == nil {
		return data, err
	}
	return jsonpatch.MergePatch(data, patch)
}

// Job is the manifest with its mark.
func (s Sample) Job() *unstructured.Unstructured { return s.manifest.DeepCopy() }

// Unmarked is the manifest in one of the kind's versions, without the mark.
func (s Sample) Unmarked(version string) *unstructured.Unstructured {
	job := s.Job()
	job.SetAPIVersion(schema.GroupVersion{Group: s.Group, Version: version}.String())
	annotations := job.GetAnnotations()
	delete(annotations, wellknown.SuspendAnnotation)
	job.SetAnnotations(annotations)
	unstructured.RemoveNestedField(job.Object, s.SuspendPath...)
	return job
}

// Versions returns the versions of the kind, the preferred one first.
func (s Sample) Versions() []string { return slices.Concat([]string{s.Version}, s.OlderVersions) }

// GVR is the kind's resource in one of its versions.
func (s Sample) GVR(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: s.Group, Version: version, Resource: s.Resource}
}

// Marked reports whether the manifest carries a mark of its kind.
func (s Sample) Marked() bool {
	suspended, _, _ := unstructured.NestedBool(s.manifest.Object, s.SuspendPath...)
	return s.manifest.GetAnnotations()[wellknown.SuspendAnnotation] == "true" || s.MarkedBySuspend && suspended
}

// Hold is the name of the policy that holds the kind's jobs. Kinds with the same name share it.
func (s Sample) Hold() string { return "kube-queue-hold-" + strings.ToLower(s.Kind.Kind) }
