package lifecycle

import (
	"testing"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

func TestTheAttemptOfAUnitThatReplacesALostOneIsThatOfItsJob(t *testing.T) {
	for text, want := range map[string]int32{"1": 1, "7": 7, "1000000": 1_000_000,
		"0": 1, "-3": 1, "1000001": 1, "2147483648": 1, "99999999999999999999": 1, "yes": 1, " 2": 1} {
		unit := &v1alpha1.QueueUnit{}
		unit.Annotations = Restored(map[string]string{"a": "b"}, text)
		if got := RestoredFor(unit); got != want || unit.Annotations["a"] != "b" {
			t.Errorf("attempt %q: %d, not %d; annotations %v", text, got, want, unit.Annotations)
		}
	}
	if kept := Restored(map[string]string{"a": "b"}, ""); len(kept) != 1 {
		t.Errorf("no attempt: %v", kept)
	}
}

func TestAUnitIsChargedWithoutWaitingOnlyOnce(t *testing.T) {
	of := func(change func(*v1alpha1.QueueUnitStatus), annotations map[string]string) int32 {
		unit := &v1alpha1.QueueUnit{}
		unit.Annotations = annotations
		change(&unit.Status)
		return RestoredFor(unit)
	}
	restored := map[string]string{wellknown.ReleasedAnnotation: "3"}
	if got := of(func(*v1alpha1.QueueUnitStatus) {}, nil); got != 0 {
		t.Errorf("a unit like any other: %d", got)
	}
	if got := of(func(s *v1alpha1.QueueUnitStatus) { s.Phase = v1alpha1.PhaseEnqueued }, restored); got != 3 {
		t.Errorf("one that waits: %d", got)
	}
	for _, status := range []v1alpha1.QueueUnitStatus{{Phase: v1alpha1.PhaseDequeued, Attempts: 3}, {Phase: v1alpha1.PhaseRunning},
		{Phase: v1alpha1.PhaseFailed}, {Phase: v1alpha1.PhaseEnqueued, Attempts: 3}, {Phase: v1alpha1.PhaseBackoff, Attempts: 4}} {
		if got := of(func(s *v1alpha1.QueueUnitStatus) { *s = status }, restored); got != 0 {
			t.Errorf("%+v: %d", status, got)
		}
	}
}
