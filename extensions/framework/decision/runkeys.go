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

// RunKeys are the annotations of a job that still count while it runs.
type RunKeys struct {
	// Active is false to hold or evict the job.
	Active bool
	// MaxTime is the maximum execution time in seconds; nil: unlimited.
	MaxTime *int32
}

// readRunKeys reads the keys of the job. An unreadable key keeps its value from kept, independently of the other key;
// the error is for the job's owner.
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

// readSeconds returns nil if the annotation is absent.
func readSeconds(key string, annotations map[string]string) (*int32, error) {
	text, there := annotations[key]
	if !there {
		return nil, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 32)
	if err != nil || seconds < 1 {
		return nil, fmt.Errorf("annotation %s must be an integer from 1 to 2147483647 (seconds), not %q", key, text)
	}
	return new(int32(seconds)), nil
}

// RunKeysOf returns the keys of the job. The unit's value replaces an unreadable key, so that a typo neither stops a
// running job nor gives it more time.
func RunKeysOf(job framework.Object, unit *v1alpha1.QueueUnit) (RunKeys, error) {
	var kept RunKeys
	if unit != nil {
		kept = RunKeys{Active: active(unit), MaxTime: unit.Spec.MaximumExecutionTimeSeconds}
	}
	return readRunKeys(job, kept)
}

// Differs reports whether the unit's spec has other values.
func (k RunKeys) Differs(unit *v1alpha1.QueueUnit) bool {
	return k.Active != active(unit) || !ptr.Equal(k.MaxTime, unit.Spec.MaximumExecutionTimeSeconds)
}

// Spec returns the part of a merge patch that updates the unit's spec.
func (k RunKeys) Spec() map[string]any {
	return map[string]any{"active": k.Active, "maximumExecutionTimeSeconds": k.MaxTime}
}
