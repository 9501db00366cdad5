package lifecycle

import (
	"maps"
	"strconv"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// mostAttempts is the largest attempt number that is accepted from a job. The job's owner can write anything into its
// annotation.
const mostAttempts = 1_000_000

// Restored returns the annotations of a unit that replaces a lost one. attempt is the attempt with which the job was
// released, according to its annotation. Restored does not change its argument.
func Restored(annotations map[string]string, attempt string) map[string]string {
	if attempt == "" {
		return annotations
	}
	all := map[string]string{}
	maps.Copy(all, annotations)
	all[wellknown.ReleasedAnnotation] = strconv.Itoa(int(attemptOf(attempt)))
	return all
}

// RestoredFor returns the attempt with which the job was released, if the unit replaces a lost one and is not admitted
// yet; 0 otherwise. The policy of units lets only job-extensions set the annotation.
func RestoredFor(unit *v1alpha1.QueueUnit) int32 {
	attempt, restored := unit.Annotations[wellknown.ReleasedAnnotation]
	if !restored || !unit.Status.Phase.Waits() || unit.Status.Attempts > 0 {
		return 0
	}
	return attemptOf(attempt)
}

func attemptOf(text string) int32 {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n > 0 && n <= mostAttempts {
		return int32(n)
	}
	return 1
}
