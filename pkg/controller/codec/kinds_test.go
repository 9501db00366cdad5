package codec

import (
	"maps"
	"slices"
	"strings"
	"testing"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

func refTo(apiVersion, kind string) *schedulingv1alpha1.ConsumerReference {
	return &schedulingv1alpha1.ConsumerReference{APIVersion: apiVersion, Kind: kind}
}

func TestKindsHaveNumbers(t *testing.T) {
	var k Kinds
	job, tfJob := k.of(refTo("batch/v1", "Job")), k.of(refTo("kubeflow.org/v1", "TFJob"))
	if job == 0 || job == tfJob || k.of(refTo("batch/v1", "Job")) != job || k.of(refTo("", "")) != 0 {
		t.Errorf("Job is %d, TFJob %d", job, tfJob)
	}
	if list := k.Names(); list[job] != "Job" || list[tfJob] != "TFJob" {
		t.Errorf("the kinds are %q", list)
	}
}

// Anyone may create units for kinds of other groups, with any name.
func TestOnlyTheKindsThatJobExtensionsQueuesNotAreOff(t *testing.T) {
	var k Kinds
	byHand, v1, v2 := k.of(refTo("example.com/v1", "Job")), k.of(refTo("kubeflow.org/v1", "MPIJob")), k.of(refTo("kubeflow.org/v2beta1", "MPIJob"))
	off := k.Off(map[string]string{"kinds.kube-queue/job": "off", "kinds.kube-queue/mpiv1": "off", "kinds.kube-queue/mpiv2beta1": "on", "kinds.kube-queue/other": "off"})
	job := k.of(refTo("batch/v1", "Job"))
	if numbers := slices.Sorted(maps.Keys(off)); len(off) != 2 || off[job] == nil || off[v1] == nil {
		t.Fatalf("kinds %v are off, want %d and %d, and neither %d nor %d", numbers, job, v1, byHand, v2)
	}
	if r := off[job]; r.Reason != wellknown.ReasonKindNotQueued || !strings.Contains(r.Message(), "add job to its --enabled-extensions") {
		t.Errorf("it says %+v", r)
	}
	for i := range 70000 { // units with more kinds than there are numbers
		k.of(refTo("v1", strings.Repeat("x", i%63)+string(rune(i))))
	}
	if now := k.of(refTo("ray.io/v1", "RayJob")); now == 0 {
		t.Error("a kind that is queued has no number")
	}
}
