package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/pkg/bounds"
)

// ofPods is an annotation of pods.
const ofPods = "example.com/of-pods"

// podsAreAnnotatedOnlyByARelease tests what job-extensions may change in the templates of a job with the maximum
// number of pod groups.
func podsAreAnnotatedOnlyByARelease(t *testing.T, kind heldKind, _ dynamic.ResourceInterface) {
	f := fencedNamespace(t, kind)
	job := kind.job(t)
	kind.multiply(t, job, bounds.PodSets-1)
	create(t, f.tenant, job)
	added := kind.annotationsOf(t, job)
	annotate := func(object map[string]any) {
		if done, _ := decision.Annotate(kind.Kind, object, added, nil); len(done) != len(added) {
			t.Fatalf("of %d pod sets, %d have a place", len(added), len(done))
		}
	}
	record := func(object map[string]any) { mergeText(t, object, recordText(added.Record())) }
	release := func(object map[string]any) { mergeText(t, object, kind.releaseText()) }
	label := func(object map[string]any) {
		decision.Merge(annotated(object)[0], map[string]any{"labels": map[string]any{"a": "b"}})
	}
	if len(kind.Places) == 0 {
		annotate = func(object map[string]any) {
			mergeText(t, object, `{spec: {driver: {annotations: {`+ofPods+`: a}}}}`)
		}
	}
	for _, test := range []struct {
		name    string
		changes []func(map[string]any)
		allowed bool
	}{
		{"annotations that the job lists", []func(map[string]any){annotate, record, release}, len(kind.Places) > 0},
		{"annotations that it does not list", []func(map[string]any){annotate, release}, false},
		{"annotations without a release", []func(map[string]any){annotate, record}, false},
		{"labels too", []func(map[string]any){annotate, label, record, release}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := changeJob(t, f.queue, []string{metav1.DryRunAll}, test.changes...)
			if !test.allowed {
				onlyOwn(t, err)
				return
			}
			allowed(t, "a release", err)
		})
	}
	if len(kind.Places) == 0 {
		return
	}
	released, err := changeJob(t, f.queue, nil, annotate, record, release)
	must(t, err)
	kind.wantSuspended(t, released, false)
	if got := len(annotated(released.Object)); got != len(added) {
		t.Errorf("%d of %d pod sets are annotated", got, len(added))
	}
	remove := func(object map[string]any) {
		decision.Annotate(kind.Kind, object, nil, added)
	}
	_, err = changeJob(t, f.queue, []string{metav1.DryRunAll}, remove)
	if !kind.Native || !apierrors.IsInvalid(err) { // the API server itself protects the template of a running Job
		onlyOwn(t, err)
	}
	kind.awaitSuspended(t, f.queue, false)
	patch(t, f.queue, kind.suspend("true"))
	kind.awaitSuspended(t, f.queue, true)
	again, err := changeJob(t, f.queue, nil, remove, release, func(object map[string]any) { mergeText(t, object, recordText("")) })
	if kind.Native && cluster.Kubernetes < "1.36" {
		// It protects the template of any Job that has run.
		if !apierrors.IsInvalid(err) {
			t.Errorf("the template of a Job that has run was changed: %v", err)
		}
		return
	}
	must(t, err)
	if got := len(annotated(again.Object)); got != 0 {
		t.Errorf("%d pod sets are still annotated", got)
	}
}

// awaitSuspended waits until the Job controller has followed the suspend field. The API server accepts a new template
// only once the status says that the Job is suspended and no pod is active.
func (k heldKind) awaitSuspended(t *testing.T, jobs dynamic.ResourceInterface, want bool) {
	t.Helper()
	if !k.Native {
		return
	}
	eventually(t, fmt.Sprintf("the Job is suspended: %t", want), func(ctx context.Context) error {
		live, err := jobs.Get(ctx, "held", metav1.GetOptions{})
		if err != nil {
			return err
		}
		var job batchv1.Job
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &job); err != nil {
			return err
		}
		suspended := slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
			return c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionTrue
		})
		if suspended != want || want && job.Status.Active > 0 {
			return fmt.Errorf("suspended: %t, active pods: %d", suspended, job.Status.Active)
		}
		return nil
	})
}

// annotationsOf returns an annotation for each pod set of a job.
func (k heldKind) annotationsOf(t *testing.T, job *unstructured.Unstructured) decision.PodAnnotations {
	t.Helper()
	added := decision.PodAnnotations{}
	add := func(podSet string) { added[podSet] = map[string]string{ofPods: "a"} }
	for _, adapter := range registry.All() {
		switch {
		case adapter.Kind().Name != k.Name:
			continue
		case k.Related.Resource != "" || k.Resource == "workflows": // its pods are described elsewhere
			add(map[bool]string{true: "node", false: "workflow"}[k.Related.Resource != ""])
			continue
		}
		object := adapter.New()
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(job.Object, object))
		pods, err := adapter.Pods(object)
		must(t, err)
		for _, set := range pods.Sets {
			if set.Name != "submitter" { // the example lacks its template
				add(set.Name)
			}
		}
	}
	if len(added) == 0 {
		t.Fatalf("no pod set of %s", k.title)
	}
	return added
}

// changeJob sends the changes of the job as a JSON Patch.
func changeJob(t *testing.T, jobs dynamic.ResourceInterface, dryRun []string, changes ...func(map[string]any)) (*unstructured.Unstructured, error) {
	t.Helper()
	live, err := jobs.Get(t.Context(), "held", metav1.GetOptions{})
	must(t, err)
	now := runtime.DeepCopyJSON(live.Object)
	for _, change := range changes {
		change(now)
	}
	data, err := json.Marshal(decision.OperationsOf(live.Object, now))
	must(t, err)
	return jobs.Patch(t.Context(), "held", types.JSONPatchType, data, metav1.PatchOptions{DryRun: dryRun})
}

// onlyOwn checks that a change by job-extensions was refused.
func onlyOwn(t *testing.T, err error) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "job-extensions changes only the fields of a job that hold or release it") {
		t.Errorf("refused with %v", err)
	}
}

func mergeText(t *testing.T, object map[string]any, text string) {
	t.Helper()
	var patch map[string]any
	if err := yaml.Unmarshal([]byte(text), &patch); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	decision.Merge(object, patch)
}

func recordText(record string) string {
	if record == "" {
		record = "null"
	} else {
		record = `"` + record + `"`
	}
	return "{metadata: {annotations: {" + wellknown.PodAnnotationsAnnotation + ": " + record + "}}}"
}

// annotated returns the parts of the object that have the annotation of pods.
func annotated(value any) (found []map[string]any) {
	switch value := value.(type) {
	case map[string]any:
		if annotations, is := value["annotations"].(map[string]any); is && annotations[ofPods] != nil {
			found = append(found, value)
		}
		for _, field := range value {
			found = append(found, annotated(field)...)
		}
	case []any:
		for _, element := range value {
			found = append(found, annotated(element)...)
		}
	}
	return found
}
