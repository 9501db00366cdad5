package decision

import (
	"encoding/json"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/require"
)

// The unit is inactive and has a maximum execution time of 60 s. Unreadable keys do not
// change that.
func TestKeysThatCountWhileTheJobRuns(t *testing.T) {
	tests := []struct {
		name        string
		annotations map[string]string
		patch       string // of the unit's spec; none when it is up to date
		bad         bool
	}{
		{"as the unit says", map[string]string{wellknown.ActiveAnnotation: "false", wellknown.MaxExecTimeAnnotation: "60"}, "", false},
		{"none", nil, `{"active":true,"maximumExecutionTimeSeconds":null}`, false},
		{"more time", map[string]string{wellknown.ActiveAnnotation: "false", wellknown.MaxExecTimeAnnotation: "61"}, `{"active":false,"maximumExecutionTimeSeconds":61}`, false},
		{"active in another word", map[string]string{wellknown.ActiveAnnotation: "no"}, `{"active":false,"maximumExecutionTimeSeconds":null}`, true},
		{"a time with a unit", map[string]string{wellknown.MaxExecTimeAnnotation: "60s"}, `{"active":true,"maximumExecutionTimeSeconds":60}`, true},
		{"no time at all", map[string]string{wellknown.MaxExecTimeAnnotation: "0"}, `{"active":true,"maximumExecutionTimeSeconds":60}`, true},
		{"more time than can be counted", map[string]string{wellknown.MaxExecTimeAnnotation: "2147483648"}, `{"active":true,"maximumExecutionTimeSeconds":60}`, true},
		{"inactive, with a time with a unit", map[string]string{wellknown.ActiveAnnotation: "false", wellknown.MaxExecTimeAnnotation: "2h"}, "", true},
		{"nothing that can be read", map[string]string{wellknown.ActiveAnnotation: "no", wellknown.MaxExecTimeAnnotation: "soon"}, "", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u := unit(sleeping, limited)
			keys, err := RunKeysOf(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}, u)
			if (err != nil) != test.bad {
				t.Fatalf("error is %v", err)
			}
			patch := ""
			if keys.Differs(u) {
				data, err := json.Marshal(keys.Spec())
				require.NoError(t, err)
				patch = string(data)
			}
			if patch != test.patch {
				t.Errorf("the patch is %s, not %s", patch, test.patch)
			}
		})
	}
}

func TestAnExpectedRunTimeThatCannotBeReadIsIgnoredAndReported(t *testing.T) {
	for value, want := range map[string]*int32{"60": ptr.To[int32](60), "-1": nil, "0": nil, "1e99": nil, "soon": nil, "2147483648": nil, "": nil} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{wellknown.ExpectedRunTimeAnnotation: value}}}
		var d Desired
		if err := d.readKeys(job); err != nil || !ptr.Equal(d.Spec.ExpectedRunTimeSeconds, want) {
			t.Errorf("%q is read as %v (error %v)", value, d.Spec.ExpectedRunTimeSeconds, err)
		}
		warning := ""
		if want == nil {
			warning = fmt.Sprintf("annotation %s must be an integer from 1 to 2147483647 (seconds), not %q", wellknown.ExpectedRunTimeAnnotation, value)
		}
		if got := IgnoredKeys(job); got != warning {
			t.Errorf("of %q, the warning is %q", value, got)
		}
	}
}
