package framework

import (
	"encoding/json"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What cannot be read of a job whose unit is inactive and may run for 60 s stays as
// it is.
func TestKeysThatCountWhileTheJobRuns(t *testing.T) {
	tests := []struct {
		name        string
		annotations map[string]string
		patch       string // of the unit's spec; none when it is in step
		bad         bool
	}{
		{"as the unit says", map[string]string{ActiveAnnotation: "false", MaxExecTimeAnnotation: "60"}, "", false},
		{"none", nil, `{"active":true,"maximumExecutionTimeSeconds":null}`, false},
		{"more time", map[string]string{ActiveAnnotation: "false", MaxExecTimeAnnotation: "61"}, `{"active":false,"maximumExecutionTimeSeconds":61}`, false},
		{"active in another word", map[string]string{ActiveAnnotation: "no"}, `{"active":false,"maximumExecutionTimeSeconds":null}`, true},
		{"a time with a unit", map[string]string{MaxExecTimeAnnotation: "60s"}, `{"active":true,"maximumExecutionTimeSeconds":60}`, true},
		{"no time at all", map[string]string{MaxExecTimeAnnotation: "0"}, `{"active":true,"maximumExecutionTimeSeconds":60}`, true},
		{"more time than can be counted", map[string]string{MaxExecTimeAnnotation: "2147483648"}, `{"active":true,"maximumExecutionTimeSeconds":60}`, true},
		{"nothing that can be read", map[string]string{ActiveAnnotation: "no", MaxExecTimeAnnotation: "soon"}, "", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u := unit(sleeping, limited)
			keys, err := runKeysOf(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}, u)
			if (err != nil) != test.bad {
				t.Fatalf("error is %v", err)
			}
			patch := ""
			if keys.differs(u) {
				data, err := json.Marshal(keys.spec())
				if err != nil {
					t.Fatal(err)
				}
				patch = string(data)
			}
			if patch != test.patch {
				t.Errorf("the patch is %s, not %s", patch, test.patch)
			}
		})
	}
}

func TestHowAnEvictionIsTold(t *testing.T) {
	for _, test := range []struct{ name, reason, lingers, kind, message string }{
		{"what somebody has asked for is no warning", "Deactivated", "", "Normal", "The job is suspended, its quota taken back: why"},
		{"nor is what an administrator has", "QueueStopped", "", "Normal", "The job is suspended, its quota taken back: why"},
		{"what goes on all the same is one", "Deactivated", "until then", "Warning", "The job is suspended, its quota taken back: why. It keeps its quota for now: until then"},
		{"whoever has asked for it", "QueueStopped", "until then", "Warning", "The job is suspended, its quota taken back: why. It keeps its quota for now: until then"},
		{"so is all else", "MaximumExecutionTime", "", "Warning", "The job is suspended, its quota taken back: why"},
	} {
		kind, message := evictedEvent(&metav1.Condition{Reason: test.reason, Message: "why"}, test.lingers)
		if kind != test.kind || message != test.message {
			t.Errorf("%s: it is told as %s: %s", test.name, kind, message)
		}
	}
}

func TestAStoppedUnitStillSaysWhyItWasEvicted(t *testing.T) {
	u := unit(phase("Running"), condition(metav1.ConditionTrue, "MaximumExecutionTime"))
	u.Status.Conditions[0].Message = "it has run for longer than it may"
	conditions, _ := stoppedStatus(u, metav1.NewTime(noon))["conditions"].([]metav1.Condition)
	if len(conditions) != 1 || conditions[0].Reason != "Stopped" || conditions[0].Message != "it has run for longer than it may" {
		t.Errorf("conditions are %+v", conditions)
	}
}
