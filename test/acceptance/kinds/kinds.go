// Package kinds has one manifest for each kind of job that is queued, which tests
// of all kinds start from. The file is named as the kind is in --enabled-extensions.
//
// A manifest is one that a user might apply, with the mark by which its jobs ask to
// be queued. It asks for amounts for which it makes a difference what the operator
// adds. Annotations tell tests more:
//
//	acceptance.kube-queue.dev/total       what the job asks for, all pods together
//	acceptance.kube-queue.dev/batch-jobs  how many batch Jobs it is made of (0)
//	acceptance.kube-queue.dev/endless     "true": it runs until somebody deletes it
//	localcluster.kube-queue.dev/run-time  how long pods run (see test/localcluster)
//
// A manifest that says nothing about run times is one whose pods all end, and the
// job with them. Otherwise it gives each pod template that has a run time one, and
// pods that end with their job "never".
package kinds

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/registry"
)

//go:embed *.yaml
var manifests embed.FS

const (
	totalNote     = "acceptance.kube-queue.dev/total"
	batchJobsNote = "acceptance.kube-queue.dev/batch-jobs"
	endlessNote   = "acceptance.kube-queue.dev/endless"
)

// Sample is a kind of job with its manifest.
type Sample struct {
	framework.Kind
	// Total is what one job asks for.
	Total corev1.ResourceList
	// BatchJobs is how many batch Jobs a job is made of, which are not queued
	// themselves.
	BatchJobs int
	// Endless: jobs run until they are suspended or deleted.
	Endless bool

	manifest *unstructured.Unstructured
}

// All returns the samples of all kinds, in the registry's order.
func All() ([]Sample, error) {
	var all []Sample
	for _, adapter := range registry.All() {
		sample, err := read(adapter.Kind())
		if err != nil {
			return nil, fmt.Errorf("test/acceptance/kinds/%s: %w", File(adapter.Kind()), err)
		}
		all = append(all, sample)
	}
	return all, nil
}

// File is the name of the kind's manifest.
func File(kind framework.Kind) string { return kind.Name + ".yaml" }

func read(kind framework.Kind) (Sample, error) {
	text, err := manifests.ReadFile(File(kind))
	if err != nil {
		return Sample{}, err
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return Sample{}, err
	}
	job := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &job.Object); err != nil {
		return Sample{}, err
	}
	if job.GroupVersionKind() != kind.GroupVersionKind {
		return Sample{}, fmt.Errorf("it is a %s, not a %s", job.GroupVersionKind(), kind.GroupVersionKind)
	}
	notes := job.GetAnnotations()
	sample := Sample{Kind: kind, manifest: job, Endless: notes[endlessNote] == "true"}
	if err := yaml.UnmarshalStrict([]byte(notes[totalNote]), &sample.Total); err != nil || len(sample.Total) == 0 {
		return Sample{}, fmt.Errorf("annotation %s must say what the job asks for, such as '{cpu: \"2\"}': it is %q (%v)", totalNote, notes[totalNote], err)
	}
	if number, there := notes[batchJobsNote]; there {
		if sample.BatchJobs, err = strconv.Atoi(number); err != nil {
			return Sample{}, fmt.Errorf("annotation %s: %w", batchJobsNote, err)
		}
	}
	return sample, nil
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

// Versions of the kind, the best first.
func (s Sample) Versions() []string { return slices.Concat([]string{s.Version}, s.OlderVersions) }

// GVR is the kind's resource in one of its versions.
func (s Sample) GVR(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: s.Group, Version: version, Resource: s.Resource}
}

// Marked reports whether the job asks to be queued by the kind's mark.
func (s Sample) Marked() bool {
	suspended, _, _ := unstructured.NestedBool(s.manifest.Object, s.SuspendPath...)
	return s.manifest.GetAnnotations()[wellknown.SuspendAnnotation] == "true" || s.MarkedBySuspend && suspended
}

// Hold is the name of the policy that holds the kind's jobs. Kinds of one name
// share it.
func (s Sample) Hold() string { return "kube-queue-hold-" + strings.ToLower(s.Kind.Kind) }
