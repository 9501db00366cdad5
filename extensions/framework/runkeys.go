package framework

import (
	"fmt"
	"strconv"

	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

// runKeys are those keys on a job that count while it runs, too.
type runKeys struct {
	// Active is false when the job asks to be held back or evicted.
	Active bool
	// MaxTime is for how many seconds it may run; nil: as long as it takes.
	MaxTime *int32
}

func readRunKeys(job Object) (runKeys, error) {
	annotations := job.GetAnnotations()
	isActive, err := readBool("annotation "+ActiveAnnotation, annotations[ActiveAnnotation])
	if err != nil {
		return runKeys{}, err
	}
	keys := runKeys{Active: isActive}
	if text, there := annotations[MaxExecTimeAnnotation]; there {
		seconds, err := strconv.ParseInt(text, 10, 32)
		if err != nil || seconds < 1 {
			return runKeys{}, fmt.Errorf("annotation %s must be a whole number of seconds from 1 to 2147483647, not %q", MaxExecTimeAnnotation, text)
		}
		keys.MaxTime = ptr.To(int32(seconds))
	}
	return keys, nil
}

// runKeysOf are those of the job or, when they cannot be read, what the unit says:
// nothing that runs is stopped, or given more time, by a slip. The error is for the
// job's owner.
func runKeysOf(job Object, unit *v1alpha1.QueueUnit) (runKeys, error) {
	keys, err := readRunKeys(job)
	if err != nil && unit != nil {
		keys = runKeys{Active: active(unit), MaxTime: unit.Spec.MaximumExecutionTimeSeconds}
	}
	return keys, err
}

func (k runKeys) differs(unit *v1alpha1.QueueUnit) bool {
	return k.Active != active(unit) || !ptr.Equal(k.MaxTime, unit.Spec.MaximumExecutionTimeSeconds)
}

// spec is the part of a merge patch of a unit that brings it in step.
func (k runKeys) spec() map[string]any {
	return map[string]any{"active": k.Active, "maximumExecutionTimeSeconds": k.MaxTime}
}
