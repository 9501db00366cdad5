package reconciler

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHowAnEvictionIsReported(t *testing.T) {
	for _, test := range []struct{ name, reason, lingers, kind, message string }{
		{"what a user requested is no warning", "Deactivated", "", "Normal", "Suspended: why"},
		{"nor is what an administrator requested", "QueueStopped", "", "Normal", "Suspended: why"},
		{"a job that continues gets a warning", "Deactivated", "until then", "Warning", "Suspended: why. The job still holds its quota: until then"},
		{"whoever requested it", "QueueStopped", "until then", "Warning", "Suspended: why. The job still holds its quota: until then"},
		{"everything else is a warning", "MaximumExecutionTime", "", "Warning", "Suspended to take the quota back: why"},
	} {
		kind, message := evictedEvent(marked(), &metav1.Condition{Reason: test.reason, Message: "why"}, test.lingers)
		if kind != test.kind || message != test.message {
			t.Errorf("%s: it is reported as %s: %s", test.name, kind, message)
		}
	}
	nightly := marked()
	for _, schedule := range []string{"CronJob", "CronWorkflow", "ScheduledSparkApplication"} {
		nightly.OwnerReferences = []metav1.OwnerReference{{Kind: schedule, Name: "nightly", Controller: new(true)}}
		for reason, want := range map[string]bool{"MaximumExecutionTime": true, "Deactivated": true, "Preempted": false} {
			if _, message := evictedEvent(nightly, &metav1.Condition{Reason: reason, Message: "why"}, ""); strings.Contains(message, schedule+" nightly") != want {
				t.Errorf("%s is reported as %s", reason, message)
			}
		}
	}
}
