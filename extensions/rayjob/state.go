package rayjob

import (
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
)

func (adapter) State(object framework.Object) framework.JobState {
	job := framework.As[job](object)
	state := job.Status.JobDeploymentStatus
	// A job in state Waiting has its cluster and waits for its user to submit it.
	running := state == rayv1.JobDeploymentStatusRunning || state == rayv1.JobDeploymentStatusWaiting
	return framework.JobState{
		Suspended:  job.Spec.Suspend,
		Unholdable: unholdable(&job.Spec),
		ManagedBy:  ptr.Deref(job.Spec.ManagedBy, ""),
		Started:    started(&job.Status),
		Running:    running,
		// The operator leaves state Initializing only when the RayCluster is in state ready. The
		// submitter starts after that, and does not count.
		Ready: running,
		// The operator does not suspend a job that it refuses. Without a cluster, it has no pods.
		Stopped:     state == rayv1.JobDeploymentStatusSuspended || job.Spec.Suspend && refused(&job.Status) && job.Status.RayClusterName == "",
		Lingers:     lingers(state),
		Unstoppable: unstoppable(&job.Spec.RayJobSpec),
		End:         end(job),
	}
}

// lingers returns why suspending does not stop the job: KubeRay reads suspend only in jobs that are starting or
// running.
func lingers(state rayv1.JobDeploymentStatus) string {
	if state != rayv1.JobDeploymentStatusWaiting {
		return ""
	}
	return "KubeRay does not suspend a RayJob in state Waiting until spec.jobId is set; delete the job to stop it now"
}

// unstoppable returns why there are times when a job cannot be stopped.
func unstoppable(spec *rayv1.RayJobSpec) string {
	if spec.SubmissionMode != rayv1.InteractiveMode {
		return ""
	}
	return "KubeRay does not suspend a RayJob of spec.submissionMode InteractiveMode while it waits for its user"
}

// started uses the state, because startTime is also set in jobs that were created
// suspended.
func started(status *rayv1.RayJobStatus) bool {
	switch status.JobDeploymentStatus {
	case rayv1.JobDeploymentStatusNew, rayv1.JobDeploymentStatusSuspended, rayv1.JobDeploymentStatusValidationFailed:
		return ptr.Deref(status.Failed, 0) > 0 // between two attempts
	}
	return true
}

// end returns the end of a job. A job that the operator has rejected never runs again, so it has ended. But a job that
// was rejected while held has not ended, because it never started: it is reported as invalid. Only a started job has a
// cluster.
func end(job *job) *framework.End {
	status := &job.Status
	switch state := status.JobDeploymentStatus; {
	case state == rayv1.JobDeploymentStatusComplete:
		succeeded := status.JobStatus == rayv1.JobStatusSucceeded
		return &framework.End{Succeeded: succeeded, Reason: string(status.Reason), Message: status.Message}
	case state == rayv1.JobDeploymentStatusFailed, refused(status) && (!job.Spec.Suspend || status.RayClusterName != ""):
		return &framework.End{Reason: string(status.Reason), Message: status.Message}
	}
	return nil
}

// refused reports whether the operator found the job invalid. The operator does not check the job again.
func refused(status *rayv1.RayJobStatus) bool {
	return status.JobDeploymentStatus == rayv1.JobDeploymentStatusValidationFailed
}

// unholdable returns why a job cannot be suspended, or cannot have the
// shutdownAfterJobFinishes that a suspended job must have.
func unholdable(spec *spec) string {
	if len(spec.ClusterSelector) > 0 {
		return "a RayJob with spec.clusterSelector cannot be suspended, so it cannot be queued; create it again with its own cluster in spec.rayClusterSpec, or queue the RayCluster instead"
	}
	if spec.DeletionPolicy == rayv1.DeleteNone {
		return "a RayJob with spec.deletionPolicy DeleteNone cannot have spec.shutdownAfterJobFinishes, so it cannot be suspended and queued; " +
			"create it again without spec.deletionPolicy, or with another one"
	}
	strategy := spec.DeletionStrategy
	if strategy == nil {
		return ""
	}
	if len(strategy.DeletionRules) > 0 {
		return "a RayJob with spec.deletionStrategy.deletionRules cannot have spec.shutdownAfterJobFinishes, so it cannot be suspended and queued; " +
			"create it again with spec.shutdownAfterJobFinishes and spec.ttlSecondsAfterFinished instead"
	}
	if keeps(strategy.OnSuccess) || keeps(strategy.OnFailure) {
		return "a RayJob with policy DeleteNone in spec.deletionStrategy cannot have spec.shutdownAfterJobFinishes, so it cannot be suspended and queued; " +
			"create it again without spec.deletionStrategy, or with another policy"
	}
	return ""
}

// holdable returns the conditions of unholdable for the hold policy.
func holdable() []framework.Condition {
	return []framework.Condition{
		{Name: "uses-no-cluster-of-others", Expression: "object.spec.?clusterSelector.orValue({}) == {}"},
		{Name: "deletion-lets-it-shut-down", Expression: `object.spec.?deletionStrategy.?deletionRules.orValue([]) == []
&& object.spec.?deletionStrategy.?onSuccess.?policy.orValue('') != 'DeleteNone'
&& object.spec.?deletionStrategy.?onFailure.?policy.orValue('') != 'DeleteNone'
&& object.spec.?deletionPolicy.orValue('') != 'DeleteNone'`},
	}
}

func keeps(policy *rayv1.DeletionPolicy) bool {
	return policy != nil && ptr.Deref(policy.Policy, "") == rayv1.DeleteNone
}
