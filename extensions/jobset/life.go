package jobset

import (
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// started reports whether a Job has had pods, or the JobSet was resumed. The status has
// no start time.
func started(status *jobset.JobSetStatus) bool {
	return slices.ContainsFunc(status.ReplicatedJobsStatus, func(group jobset.ReplicatedJobStatus) bool {
		return group.Active > 0 || group.Ready > 0 || group.Succeeded > 0 || group.Failed > 0
	}) || status.Restarts > 0 ||
		apimeta.IsStatusConditionFalse(status.Conditions, string(jobset.JobSetSuspended)) ||
		apimeta.IsStatusConditionTrue(status.Conditions, string(jobset.JobSetStartupPolicyCompleted))
}

// running reports whether all pods of some Job are ready. An active Job may have pods that wait for a node; a Job
// without pods is ready immediately, and never active.
func running(status *jobset.JobSetStatus) bool {
	return slices.ContainsFunc(status.ReplicatedJobsStatus, func(group jobset.ReplicatedJobStatus) bool { return group.Active > 0 && group.Ready > 0 })
}

// ready reports whether all pods of the Jobs that the controller must run now are ready or have succeeded. The
// controller counts a Job as ready if it has as many ready and succeeded pods as run at the same time.
func ready(set *jobset.JobSet) bool {
	if apimeta.IsStatusConditionTrue(set.Status.Conditions, string(jobset.JobSetSuspended)) {
		return false
	}
	due := map[string]bool{}
	for i := range set.Spec.ReplicatedJobs {
		group := &set.Spec.ReplicatedJobs[i]
		due[group.Name] = isDue(set, group, due)
		status := find(set.Status.ReplicatedJobsStatus, group.Name)
		if due[group.Name] && (status == nil || int64(status.Ready)+int64(status.Succeeded) < int64(group.Replicas)) {
			return false
		}
	}
	return len(set.Spec.ReplicatedJobs) > 0
}

// isDue reports whether the group's Jobs run together with the others that are due. A group that
// depends on the end of another, or on a group that does so, comes later. A group depends only on
// groups before it.
func isDue(set *jobset.JobSet, group *jobset.ReplicatedJob, due map[string]bool) bool {
	return !slices.ContainsFunc(group.DependsOn, func(on jobset.DependsOn) bool {
		return !due[on.Name] || on.Status == jobset.DependencyComplete && !isComplete(set, on.Name)
	})
}

// isComplete reports whether all Jobs of the group have succeeded.
func isComplete(set *jobset.JobSet, name string) bool {
	status := find(set.Status.ReplicatedJobsStatus, name)
	for i := range set.Spec.ReplicatedJobs {
		if group := &set.Spec.ReplicatedJobs[i]; group.Name == name {
			return status != nil && status.Succeeded >= group.Replicas
		}
	}
	return false
}

// idle reports whether no Job has pods, and none can create any. The controller counts
// before it suspends the Jobs, so the number of active Jobs is meaningful only when all
// Jobs are counted as suspended or finished. A group that depends on another may have no
// Jobs yet. No count includes terminating pods.
func idle(set *jobset.JobSet) bool {
	for i := range set.Spec.ReplicatedJobs {
		group := &set.Spec.ReplicatedJobs[i]
		status := find(set.Status.ReplicatedJobsStatus, group.Name)
		if status == nil || status.Active > 0 {
			return false
		}
		quiet := status.Suspended + status.Succeeded + status.Failed
		if quiet < group.Replicas && (len(group.DependsOn) == 0 || quiet > 0) {
			return false
		}
	}
	return true
}

func find(statuses []jobset.ReplicatedJobStatus, name string) *jobset.ReplicatedJobStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}

// end returns the end of the JobSet. A failed Job that is recreated is not an end.
func end(status *jobset.JobSetStatus) *framework.End {
	for _, name := range []jobset.JobSetConditionType{jobset.JobSetCompleted, jobset.JobSetFailed} {
		succeeded := name == jobset.JobSetCompleted
		c := apimeta.FindStatusCondition(status.Conditions, string(name))
		switch {
		case c != nil && c.Status == metav1.ConditionTrue:
			return &framework.End{Succeeded: succeeded, Reason: c.Reason, Message: c.Message}
		case status.TerminalState == string(name):
			return &framework.End{Succeeded: succeeded}
		}
	}
	return nil
}
