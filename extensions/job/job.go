// Package job is the adapter of the API server's own batch Job.
//
// A Job is marked by its suspend field or by the annotation. Each Job of a CronJob is
// queued separately; Jobs of other controllers are parts of a larger job. The API server
// decodes Jobs itself, so no malformed Job can fail a list.
package job

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
)

// podSet is the name of the only pod set.
const podSet = "main"

type adapter struct{}

// New returns the adapter.
func New() framework.Adapter { return adapter{} }

func (adapter) Kind() framework.Kind {
	return framework.Kind{
		Name:             "job",
		GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("Job"),
		Resource:         "jobs",
		SuspendPath:      []string{"spec", "suspend"},
		MarkedBySuspend:  true,
		Native:           true,
		ManagedBy:        batchv1.JobControllerName,
		PodLabel:         framework.PodLabel{Key: batchv1.ControllerUidLabel, IsUID: true},
		Fence: framework.Fence{
			Frozen: [][]string{{"spec", "template"}},
			// As PodsAtOnce.
			Size:  "[job.spec.?parallelism.orValue(1), job.spec.?completions.orValue(job.spec.?parallelism.orValue(1))].min()",
			Ended: framework.Ended{Conditions: []string{string(batchv1.JobComplete), string(batchv1.JobFailed)}},
		},
		Elastic: &framework.Elastic{PodSet: podSet, Path: []string{"spec", "parallelism"}},
		Places:  []framework.Place{{PodSet: podSet, Path: []string{"spec", "template", "metadata", "annotations"}}},
		Doc: framework.Doc{
			Shows:   "STATUS `Suspended`",
			Counts:  "`parallelism` pods, at most the remaining `completions`",
			Ready:   "`parallelism` pods, at most `completions`, are ready or have succeeded",
			Partial: "`completions` stays, so the remaining completions follow with the same, smaller number of pods",
			Frees:   "condition Complete or Failed",
			Stops:   "condition Suspended, and no pod is active or terminating",
			Gang:    "the API server forbids adding `spec.scheduling` to an existing Job and changing `schedulingGroup` of its pod template",
		},
	}
}

func (adapter) New() framework.Object { return &batchv1.Job{} }

func (adapter) State(object framework.Object) framework.JobState {
	job := framework.As[batchv1.Job](object)
	status := &job.Status
	return framework.JobState{
		Suspended: ptr.Deref(job.Spec.Suspend, false),
		ManagedBy: ptr.Deref(job.Spec.ManagedBy, ""),
		Started:   status.StartTime != nil,
		// Active includes pods that still wait for a node.
		Running: status.Active > 0 && ptr.Deref(status.Ready, 0) > 0,
		Ready:   ready(&job.Spec, status),
		Stopped: condition(status, batchv1.JobSuspended) != nil && status.Active == 0 && ptr.Deref(status.Terminating, 0) == 0,
		End:     end(status),
	}
}

// ready reports whether all pods that run at the same time are ready or have succeeded. Pods that have succeeded count
// in addition to those that replace them: if pods end faster than others start, they are never all ready at once.
func ready(spec *batchv1.JobSpec, status *batchv1.JobStatus) bool {
	up := ptr.Deref(status.Ready, 0)
	return status.StartTime != nil && condition(status, batchv1.JobSuspended) == nil &&
		int64(up)+int64(status.Succeeded) >= int64(PodsAtOnce(spec, 0)) && (up > 0 || PodsAtOnce(spec, status.Succeeded) <= 0)
}

// end returns the end of the Job. The controller writes these conditions after all pods
// have ended.
func end(status *batchv1.JobStatus) *framework.End {
	if c := condition(status, batchv1.JobComplete); c != nil {
		return &framework.End{Succeeded: true, Reason: c.Reason, Message: c.Message}
	}
	if c := condition(status, batchv1.JobFailed); c != nil {
		return &framework.End{Reason: c.Reason, Message: c.Message}
	}
	return nil
}

// condition returns the condition of the type if it is true.
func condition(status *batchv1.JobStatus, name batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == name && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func (adapter) Pods(object framework.Object) (framework.Pods, error) {
	job := framework.As[batchv1.Job](object)
	count := PodsAtOnce(&job.Spec, job.Status.Succeeded)
	return framework.Pods{Sets: []framework.PodSet{{
		Name: podSet, Count: count, Ended: PodsAtOnce(&job.Spec, 0) - count, Template: &job.Spec.Template,
	}}}, nil
}

// Growing returns the pod set, unless completions limit it at the release: only an Indexed Job can change its
// completions. A job with a minimum count can be released with fewer pods, and grow to all of them later.
func (adapter) Growing(object, _ framework.Object) map[string]int32 {
	job := framework.As[batchv1.Job](object)
	spec := &job.Spec
	fixed := spec.Completions != nil && ptr.Deref(spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.NonIndexedCompletion &&
		job.Annotations[wellknown.MinCountAnnotation] == ""
	released := strings.Contains(job.Annotations[wellknown.PodAnnotationsAnnotation], wellknown.GrowthAnnotation+"=")
	if fixed && !released && ptr.Deref(spec.Parallelism, 1) >= *spec.Completions {
		return nil
	}
	return map[string]int32{podSet: PodsAtOnce(spec, job.Status.Succeeded)}
}

func (adapter) KeepsGrowth() string {
	return "the Job controller counts pods that others delete as failed, so the Job could fail"
}

// PodsAtOnce returns how many pods of a Job run at the same time: at most the remaining
// completions. Without completions the pods themselves decide when the Job is done.
func PodsAtOnce(spec *batchv1.JobSpec, succeeded int32) int32 {
	parallelism := ptr.Deref(spec.Parallelism, 1)
	if spec.Completions == nil {
		return parallelism
	}
	return min(parallelism, max(*spec.Completions-max(succeeded, 0), 0))
}

func (adapter) Templates(object framework.Object) []*corev1.PodTemplateSpec {
	job := framework.As[batchv1.Job](object)
	return []*corev1.PodTemplateSpec{&job.Spec.Template}
}

func (adapter) SuspendPatch(_ framework.Object, suspend bool) map[string]any {
	return map[string]any{"spec": map[string]any{"suspend": suspend}}
}
