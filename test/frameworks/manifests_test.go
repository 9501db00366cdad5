package frameworks

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kube-queue.dev/kube-queue/test/acceptance/kinds"
	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/harness"
)

// specimen is a kind of job.
type specimen struct {
	kind     string
	resource schema.GroupVersionResource
	// extension is its name in --enabled-extensions.
	extension string
	// name is the name of its story, if it differs from the extension.
	name string
	// sample has the manifest of the jobs, which is held by its mark.
	sample kinds.Sample
	// total is what one job requests, as the max of a quota.
	total string
	// suspend is the path of the suspend field.
	suspend []string
	// view reads the status of the job.
	view audit.KindView
	// endless: jobs run until they are suspended or deleted.
	endless bool
	// jobs is the number of batch Jobs that a job creates. They are not queued themselves.
	jobs int
	// fenced: its namespace is managed, so its jobs run behind the fence.
	fenced bool
	// test is its story. Nil means the default story.
	test func(*story)
}

// queuing is the state of a waiting job, for kinds that show it.
const queuing = "Queuing"

func specimenOf(t *testing.T, sample kinds.Sample) specimen {
	t.Helper()
	view, err := audit.ViewOf(sample.Group, sample.Version, sample.Resource)
	harness.Must(t, err)
	total, err := json.Marshal(sample.Total)
	harness.Must(t, err)
	return specimen{
		kind: sample.Kind.Kind, resource: sample.GVR(sample.Version), extension: sample.Name, sample: sample,
		total: string(total), suspend: sample.SuspendPath, view: view, endless: sample.Endless, jobs: sample.BatchJobs,
	}
}

// never is the run time of pods that end with their job.
const never = "never"

// manifest returns a job with a run time and an exit code.
func (s specimen) manifest(j job) *unstructured.Unstructured {
	object := s.sample.Job()
	object.SetName(j.name)
	code := "0"
	if j.fails {
		code = "1"
	}
	notes := notesOnRunTimes(object)
	if len(notes) == 0 {
		notes = notesOfTemplates(object)
	}
	for _, annotations := range notes {
		if annotations[harness.RunTime] != never {
			annotations[harness.RunTime], annotations[harness.ExitCode] = j.runs.String(), code
		}
	}
	return object
}

// notesOnRunTimes returns all annotations of the manifest that contain a run time.
func notesOnRunTimes(object *unstructured.Unstructured) []map[string]any {
	var notes []map[string]any
	visit(object.Object, func(part map[string]any) {
		if _, says := part[harness.RunTime]; says {
			notes = append(notes, part)
		}
	})
	return notes
}

// notesOfTemplates returns the annotations of all pod templates.
func notesOfTemplates(object *unstructured.Unstructured) []map[string]any {
	var notes []map[string]any
	visit(object.Object, func(part map[string]any) {
		if _, isTemplate, _ := unstructured.NestedSlice(part, "spec", "containers"); isTemplate {
			notes = append(notes, inside(inside(part, "metadata"), "annotations"))
		}
	})
	return notes
}

// inside returns the map at a key, which it creates if needed.
func inside(part map[string]any, key string) map[string]any {
	inner, there := part[key].(map[string]any)
	if !there {
		inner = map[string]any{}
		part[key] = inner
	}
	return inner
}

// visit calls see for each map in the value.
func visit(value any, see func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		see(v)
		for _, inner := range v {
			visit(inner, see)
		}
	case []any:
		for _, inner := range v {
			visit(inner, see)
		}
	}
}

// A story needs jobs that a test can end.
func TestEachSpecimenHasTheRunTimeOfItsManifest(t *testing.T) {
	for _, specimen := range specimens(t, func(s kinds.Sample) bool { return !s.Endless }) {
		object := specimen.manifest(job{name: "reported", runs: time.Minute, fails: true})
		reported := 0
		for _, notes := range notesOnRunTimes(object) {
			if notes[harness.RunTime] == "1m0s" && notes[harness.ExitCode] == "1" {
				reported++
			} else if notes[harness.RunTime] != never {
				t.Errorf("%s: %v", specimen.extension, notes)
			}
		}
		if reported == 0 || object.GetName() != "reported" {
			t.Errorf("%s: %d run times in %v", specimen.extension, reported, object.Object)
		}
	}
}
