package kubeflow

import (
	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// ReadyPods is Doc.Ready of these kinds.
const ReadyPods = "condition Running, and the current replicas of all roles run or have succeeded (`status.replicaStatuses`)"

// TrainingKind returns a kind of the training operator.
func TrainingKind(name, kind, resource string) framework.Kind {
	return framework.Kind{
		Name:             name,
		GroupVersionKind: training.SchemeGroupVersion.WithKind(kind),
		Resource:         resource,
		SuspendPath:      SuspendPath(),
		ManagedBy:        training.KubeflowJobsController,
		Operators:        []string{"system:serviceaccount:kubeflow:training-operator"},
		PodLabel:         framework.PodLabel{Key: training.JobNameLabel},
		Sets:             []framework.Setting{CleanPodPolicy()},
		Doc: framework.Doc{
			Shows:  "STATE `Queuing`",
			Counts: "replicas of all roles",
			Ready:  ReadyPods,
			Frees:  "condition Succeeded or Failed",
			Stops:  "condition Suspended, written after the pods are deleted",
			Gang:   "pod templates have no such field",
		},
	}
}

// TrainingParts returns the parts of a job of the training operator. The operator does
// not change conditions after it has written that a job failed.
func TrainingParts(policy *training.RunPolicy, replicas map[training.ReplicaType]*training.ReplicaSpec, status *training.JobStatus) Parts {
	parts := Parts{
		Suspend:        ptr.Deref(policy.Suspend, false),
		ManagedBy:      ptr.Deref(policy.ManagedBy, ""),
		CleanPodPolicy: string(ptr.Deref(policy.CleanPodPolicy, "")),
		Replicas:       make(map[training.ReplicaType]*Replicas, len(replicas)),
		Up:             make(map[training.ReplicaType]int32, len(status.ReplicaStatuses)),
		Started:        status.StartTime != nil,
		Conditions:     status.Conditions,
	}
	if policy.SchedulingPolicy != nil {
		parts.PriorityClass = policy.SchedulingPolicy.PriorityClass
	}
	for role, pods := range status.ReplicaStatuses {
		if pods != nil {
			parts.Up[role] = pods.Active + pods.Succeeded
		}
	}
	for role, spec := range replicas {
		parts.Replicas[role] = nil
		if spec != nil {
			parts.Replicas[role] = &Replicas{Count: spec.Replicas, Template: &spec.Template}
		}
	}
	return parts
}
