package decision

import (
	"cmp"
	"fmt"
	"strconv"

	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
)

// RunKeys are those keys on a job that count while it runs, too.
type RunKeys struct {
	// Active is false when the job asks to be held back or evicted.
	Active bool
	// MaxTime is for how many seconds it may run; nil: as long as it takes.
	MaxTime *int32
}

// readRunKeys reads the keys of the job. One that cannot be read stays as in kept,
// whatever becomes of the other; the error is for the job's owner.
func readRunKeys(job framework.Object, kept RunKeys) (RunKeys, error) {
	annotations := job.GetAnnotations()
	keys := kept
	isActive, unread := readBool("annotation "+wellknown.ActiveAnnotation, annotations[wellknown.ActiveAnnotation])
	if unread == nil {
		keys.Active = isActive
	}
	maxTime, err := readSeconds(wellknown.MaxExecTimeAnnotation, annotations)
	if err == nil {
		keys.MaxTime = maxTime
	}
	if unread != nil && err != nil {
		return keys, fmt.Errorf("%w; %w", unread, err)
	}
	return keys, cmp.Or(unread, err)
}

// readSeconds returns nil where the annotation is not there.
func readSeconds(key string, annotations map[string]string) (*int32, error) {
	text, there := annotations[key]
	if !there {
		return nil, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 32)
	if err != nil || seconds < 1 {
		return nil, fmt.Errorf("annotation %s must be a whole number of seconds from 1 to 2147483647, not %q", key, text)
	}
	return ptr.To(int32(seconds)), nil
}

// RunKeysOf are those of the job or, of one that cannot be read, what the unit says:
// nothing that runs is stopped, or given more time, by a slip.
func RunKeysOf(job framework.Object, unit *v1alpha1.QueueUnit) (RunKeys, error) {
	var kept RunKeys
	if unit != nil {
		kept = RunKeys{Active: active(unit), MaxTime: unit.Spec.MaximumExecutionTimeSeconds}
	}
	return readRunKeys(job, kept)
}

// Differs reports whether the unit's spec says something else.
func (k RunKeys) Differs(unit *v1alpha1.QueueUnit) bool {
	return k.Active != active(unit) || !ptr.Equal(k.MaxTime, unit.Spec.MaximumExecutionTimeSeconds)
}

// Spec is the part of a merge patch of a unit that brings it in step.
func (k RunKeys) Spec() map[string]any {
	return map[string]any{"active": k.Active, "maximumExecutionTimeSeconds": k.MaxTime}
}
