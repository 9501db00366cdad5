package reconciler

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHowAnEvictionIsReported(t *testing.T) {
	for _, test := range []struct{ name, reason, lingers, kind, message string }{
		{"what somebody has asked for is no warning", "Deactivated", "", "Normal", "The job is suspended, its quota taken back: why"},
		{"nor is what an administrator has", "QueueStopped", "", "Normal", "The job is suspended, its quota taken back: why"},
		{"what goes on all the same is one", "Deactivated", "until then", "Warning", "The job is suspended, its quota taken back: why. It keeps its quota for now: until then"},
		{"whoever has asked for it", "QueueStopped", "until then", "Warning", "The job is suspended, its quota taken back: why. It keeps its quota for now: until then"},
		{"so is all else", "MaximumExecutionTime", "", "Warning", "The job is suspended, its quota taken back: why"},
	} {
		kind, message := evictedEvent(&metav1.Condition{Reason: test.reason, Message: "why"}, test.lingers)
		if kind != test.kind || message != test.message {
			t.Errorf("%s: it is reported as %s: %s", test.name, kind, message)
		}
	}
}
