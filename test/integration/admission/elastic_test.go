package admission

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
)

// podsAreCountedOnlyByARelease tests when job-extensions may change the number of pods of a job, and that the tenant
// cannot raise it afterwards.
func podsAreCountedOnlyByARelease(t *testing.T, kind heldKind, _ dynamic.ResourceInterface) {
	f := fencedNamespace(t, kind)
	job := kind.job(t)
	mergeText(t, job.Object, nested(kind.Elastic.Path, "4"))
	if kind.Fence.Size != "" { // a Job has at most as many pods as completions
		mergeText(t, job.Object, "{spec: {completions: 4}}")
	}
	create(t, f.tenant, job)
	count := func(n int) func(map[string]any) {
		return func(object map[string]any) { mergeText(t, object, nested(kind.Elastic.Path, fmt.Sprint(n))) }
	}
	record := func(original, admitted string) func(map[string]any) {
		return func(object map[string]any) {
			mergeText(t, object, fmt.Sprintf("{metadata: {annotations: {%s: %s, %s: %s}}}", wellknown.OriginalCountAnnotation, original, wellknown.AdmittedCountAnnotation, admitted))
		}
	}
	recorded, forgotten := record("a=4", "a=2"), record("null", "null")
	release := func(object map[string]any) { mergeText(t, object, kind.releaseText()) }
	suspend := func(object map[string]any) { mergeText(t, object, kind.suspend("true")) }
	dryRun := []string{metav1.DryRunAll}
	refused := func(changes ...func(map[string]any)) {
		t.Helper()
		_, err := changeJob(t, f.queue, dryRun, changes...)
		onlyOwn(t, err)
	}
	refused(count(2), release)
	if _, lowers := adapterOf(kind).(framework.Autoscaled); !lowers {
		refused(count(2), recorded)
	}
	refused(count(6), recorded)
	if _, err := changeJob(t, f.queue, nil, count(2), recorded, release); err != nil {
		t.Fatalf("a release with fewer pods: %v", err)
	}
	refused(count(4), forgotten)
	refused(count(4))
	_, err := f.tenant.Patch(t.Context(), "held", types.MergePatchType, toJSON(t, nested(kind.Elastic.Path, "4")), metav1.PatchOptions{DryRun: dryRun})
	if kind.Fence.Groups == nil && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot grow")) {
		t.Errorf("the tenant raises the number: %v", err)
	}
	if _, err := changeJob(t, f.queue, nil, count(4), forgotten, suspend); err != nil {
		t.Errorf("a suspension that restores the number: %v", err)
	}
}
