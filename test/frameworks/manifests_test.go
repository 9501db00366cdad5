package frameworks

import (
	"encoding/json"
	"testing"

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
	// name is that of its story, where it is not that of its extension.
	name string
	// sample has the manifest that jobs are made from, held by its opt-in mark alone.
	sample kinds.Sample
	// total is what one job requests, as the max of a quota.
	total string
	// suspend is the path of the suspend field.
	suspend []string
	// view reads what the framework itself says of the job.
	view audit.KindView
	// endless: jobs do not end by themselves.
	endless bool
	// jobs is how many batch Jobs a job is made of, which are not queued themselves.
	jobs int
	// report is its story; nil for the one of all kinds.
	test func(*story)
}

// queuing is the state of a job that waits, for kinds that show it.
const queuing = "Queuing"

// writesOfQueuing is how many writes on a job that waits it takes to show that.
const writesOfQueuing = 2

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

// exitCode is the annotation on pods, and on RayJobs, that says how they end.
const exitCode = "localcluster.kube-queue.dev/exit-code"

// never is the run time of pods that end with their job.
const never = "never"

// manifest makes a job that runs as long, and ends, as it is to.
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
			annotations[harness.RunTime], annotations[exitCode] = j.runs.String(), code
		}
	}
	return object
}

// notesOnRunTimes are all annotations of the manifest that say how long something
// runs.
func notesOnRunTimes(object *unstructured.Unstructured) []map[string]any {
	var notes []map[string]any
	visit(object.Object, func(part map[string]any) {
		if _, says := part[harness.RunTime]; says {
			notes = append(notes, part)
		}
	})
	return notes
}

// notesOfTemplates are the annotations of all pod templates.
func notesOfTemplates(object *unstructured.Unstructured) []map[string]any {
	var notes []map[string]any
	visit(object.Object, func(part map[string]any) {
		if _, isTemplate, _ := unstructured.NestedSlice(part, "spec", "containers"); isTemplate {
			notes = append(notes, inside(inside(part, "metadata"), "annotations"))
		}
	})
	return notes
}

// inside is the map at a key, which is made if it is not there.
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
