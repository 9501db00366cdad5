package rayjob

import (
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
)

func (adapter) State(object framework.Object) framework.JobState {
	job, isJob := object.(*rayv1.RayJob)
	if !isJob {
		return framework.JobState{}
	}
	state := job.Status.JobDeploymentStatus
	return framework.JobState{
		Suspended:  job.Spec.Suspend,
		Unholdable: unholdable(&job.Spec),
		ManagedBy:  ptr.Deref(job.Spec.ManagedBy, ""),
		Started:    started(&job.Status),
		// A job that waits for its user to submit it has its cluster.
		Running: state == rayv1.JobDeploymentStatusRunning || state == rayv1.JobDeploymentStatusWaiting,
		Stopped: state == rayv1.JobDeploymentStatusSuspended,
		Lingers: lingers(state),
		End:     end(job),
	}
}

// lingers: KubeRay heeds suspend only of jobs that begin or run.
func lingers(state rayv1.JobDeploymentStatus) string {
	if state != rayv1.JobDeploymentStatusWaiting {
		return ""
	}
	return "KubeRay does not stop a RayJob in state Waiting before it is submitted by setting spec.jobId; to stop it now, delete it"
}

// started goes by the state: startTime is set of jobs too that were suspended from
// the first.
func started(status *rayv1.RayJobStatus) bool {
	switch status.JobDeploymentStatus {
	case rayv1.JobDeploymentStatusNew, rayv1.JobDeploymentStatusSuspended, rayv1.JobDeploymentStatusValidationFailed:
		return ptr.Deref(status.Failed, 0) > 0 // between two tries
	}
	return true
}

// end of a job. One that the operator has refused never runs, or never goes on. But
// one that it refused while held has not ended, since it never began: its owner is
// reported what is wrong with it. Only one that began has a cluster.
func end(job *rayv1.RayJob) *framework.End {
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

// refused: the operator found the job invalid. It does not look at it again.
func refused(status *rayv1.RayJobStatus) bool {
	return status.JobDeploymentStatus == rayv1.JobDeploymentStatusValidationFailed
}

// unholdable says why a job cannot be suspended, or cannot have the
// shutdownAfterJobFinishes that a suspended job must have.
func unholdable(spec *rayv1.RayJobSpec) string {
	if len(spec.ClusterSelector) > 0 {
		return "a job with spec.clusterSelector cannot be suspended, so it cannot be queued: give it a cluster of its own in spec.rayClusterSpec and create it again, or queue the RayCluster instead"
	}
	strategy := spec.DeletionStrategy
	if strategy == nil {
		return ""
	}
	if len(strategy.DeletionRules) > 0 {
		return "spec.deletionStrategy.deletionRules exclude spec.shutdownAfterJobFinishes, and a job without that cannot be suspended, so it cannot be queued: " +
			"use spec.shutdownAfterJobFinishes and spec.ttlSecondsAfterFinished in their place and create the job again"
	}
	if keeps(strategy.OnSuccess) || keeps(strategy.OnFailure) {
		return "policy DeleteNone in spec.deletionStrategy excludes spec.shutdownAfterJobFinishes, and a job without that cannot be suspended, so it cannot be queued: " +
			"remove spec.deletionStrategy, or choose another policy, and create the job again"
	}
	return ""
}

// holdable is to the hold policy what unholdable is to the framework.
func holdable() []framework.Condition {
	return []framework.Condition{
		{Name: "uses-no-cluster-of-others", Expression: "object.spec.?clusterSelector.orValue({}) == {}"},
		{Name: "deletion-lets-it-shut-down", Expression: `object.spec.?deletionStrategy.?deletionRules.orValue([]) == []
&& object.spec.?deletionStrategy.?onSuccess.?policy.orValue('') != 'DeleteNone'
&& object.spec.?deletionStrategy.?onFailure.?policy.orValue('') != 'DeleteNone'`},
	}
}

func keeps(policy *rayv1.DeletionPolicy) bool {
	return policy != nil && ptr.Deref(policy.Policy, "") == rayv1.DeleteNone
}
