package reconciler

import (
	"maps"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"kube-queue.dev/kube-queue/extensions/framework/decision"
)

func TestSubmissionStaysInTheSecondOfCreation(t *testing.T) {
	tests := []struct {
		name       string
		seen, want time.Duration
	}{
		{"a job seen at once keeps the time", 120 * time.Millisecond, 120 * time.Millisecond},
		{"one seen late comes last of its second", time.Hour, time.Second - time.Microsecond},
		{"one seen before it was created, by clocks that differ, comes first", -time.Second, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := submission(noon, noon.Add(test.seen)); !got.Time.Equal(noon.Add(test.want)) {
				t.Errorf("it is %v", got)
			}
		})
	}
}

func TestAUnitHasTheKindOfItsJobAsALabel(t *testing.T) {
	unit := newUnit(batchv1.SchemeGroupVersion.WithKind("Job"), &observation{key: queuedKey, job: marked(), desired: &decision.Desired{}, now: noon})
	if !maps.Equal(unit.Labels, map[string]string{"kube-queue/kind": "Job"}) || unit.Spec.ConsumerRef.Kind != "Job" {
		t.Errorf("the labels are %v, and the job is %+v", unit.Labels, unit.Spec.ConsumerRef)
	}
}
