// Package kinds has one manifest for each kind of job that is queued, which tests of all kinds start
// from: the one that users copy, examples/NAME.yaml, where NAME is that of the kind in
// --enabled-extensions, with the merge patch NAME.yaml of this folder. The patch contains what is of
// interest to tests only, mostly annotations:
//
//	acceptance.kube-queue.dev/total       what the job requests, all pods together
//	acceptance.kube-queue.dev/batch-jobs  how many batch Jobs it consists of (0)
//	acceptance.kube-queue.dev/endless     "true": it runs until somebody deletes it
//	localcluster.kube-queue.dev/run-time  how long pods run (see test/localcluster)
//
// Without a run time anywhere all pods end, and the job with them. Otherwise the patch gives one to
// each pod template that needs it, and "never" to pods that end with their job.
package kinds

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/examples"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/registry"
)

//go:embed *.yaml
var patches embed.FS

const (
	totalNote     = "acceptance.kube-queue.dev/total"
	batchJobsNote = "acceptance.kube-queue.dev/batch-jobs"
	endlessNote   = "acceptance.kube-queue.dev/endless"
)

// Sample is a kind of job with its manifest.
type Sample struct {
	framework.Kind
	// Total is what one job requests.
	Total corev1.ResourceList
	// BatchJobs is how many batch Jobs a job consists of, which are not queued themselves.
	BatchJobs int
	// Endless reports that jobs run until they are suspended or deleted.
	Endless bool

	manifest *unstructured.Unstructured
}

// All returns the samples of all kinds, in the registry's order.
func All() ([]Sample, error) {
	var all []Sample
	for _, adapter := range registry.All() {
		sample, err := read(adapter.Kind())
		if err != nil {
			return nil, fmt.Errorf("%s of examples/ and test/acceptance/kinds/: %w", File(adapter.Kind()), err)
		}
		all = append(all, sample)
	}
	return all, nil
}

// File is the name of the kind's manifest.
func File(kind framework.Kind) string { return kind.Name + ".yaml" }

func read(kind framework.Kind) (Sample, error) {
	text, err := examples.Files.ReadFile(File(kind))
	if err != nil {
		return Sample{}, err
	}
	addition, err := patches.ReadFile(File(kind))
	if err != nil {
		return Sample{}, err
	}
	data, err := merged(text, addition)
	if err != nil {
		return Sample{}, err
	}
	job := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &job.Object); err != nil {
		return Sample{}, err
	}
	if job.GroupVersionKind() != kind.GroupVersionKind {
		return Sample{}, fmt.Errorf("the manifest is a %s, not a %s", job.GroupVersionKind(), kind.GroupVersionKind)
	}
	notes := job.GetAnnotations()
	sample := Sample{Kind: kind, manifest: job, Endless: notes[endlessNote] == "true"}
	if err := yaml.UnmarshalStrict([]byte(notes[totalNote]), &sample.Total); err != nil || len(sample.Total) == 0 {
		return Sample{}, fmt.Errorf("annotation %s must contain what the job requests, such as '{cpu: \"2\"}': it is %q (%v)", totalNote, notes[totalNote], err)
	}
	if number, there := notes[batchJobsNote]; there {
		if sample.BatchJobs, err = strconv.Atoi(number); err != nil {
			return Sample{}, fmt.Errorf("annotation %s: %w", batchJobsNote, err)
		}
	}
	return sample, nil
}

// merged applies a merge patch; both texts are YAML, and the result is JSON.
func merged(text, patch []byte) ([]byte, error) {
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	change, err := yaml.YAMLToJSON(patch)
	if err != nil {
		return nil, err
	}
	return jsonpatch.MergePatch(data, change)
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

// Marked reports whether the manifest carries a mark of its kind.
func (s Sample) Marked() bool {
	suspended, _, _ := unstructured.NestedBool(s.manifest.Object, s.SuspendPath...)
	return s.manifest.GetAnnotations()[wellknown.SuspendAnnotation] == "true" || s.MarkedBySuspend && suspended
}

// Hold is the name of the policy that holds the kind's jobs. Kinds of one name
// share it.
func (s Sample) Hold() string { return "kube-queue-hold-" + strings.ToLower(s.Kind.Kind) }
