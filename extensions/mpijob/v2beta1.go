package mpijob

import (
	"fmt"

	mpi "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/validation"
	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/kubeflow"
)

// V2beta1 returns the adapter of kubeflow.org/v2beta1. Its launcher is the pod of a batch Job, which the operator
// suspends and resumes with the MPIJob. The operator adds no container to any pod, and starts all workers even if the
// launcher is a worker too.
func V2beta1() framework.Adapter {
	return kubeflow.Base[*mpi.MPIJob]{
		Named: framework.Kind{
			Name:             "mpiv2beta1",
			GroupVersionKind: mpi.SchemeGroupVersion.WithKind(mpi.Kind),
			Resource:         training.MPIJobPlural,
			SuspendPath:      kubeflow.SuspendPath(),
			ManagedBy:        mpi.KubeflowJobController,
			Parts:            launcherJob(),
			Fence:            fence(),
			Operators:        []string{"system:serviceaccount:mpi-operator:mpi-operator"},
			PodLabel:         framework.PodLabel{Key: mpi.JobNameLabel},
			Sets:             []framework.Setting{kubeflow.CleanPodPolicy()},
			Doc: framework.Doc{
				Shows:  "condition `Queuing`; kubectl has no column for it",
				Counts: "replicas of all roles",
				Ready:  kubeflow.ReadyPods,
				Frees:  "condition Succeeded or Failed, and `completionTime`",
				Stops:  "condition Suspended, and no active launcher",
				Gang:   "pod templates have only `workloadRef`, which only Kubernetes 1.35 has, and no `schedulingGroup`",
			},
		},
		Field: replicasField,
		Roles: roles(),
		Empty: func() *mpi.MPIJob { return &mpi.MPIJob{} },
		Parts: partsV2beta1,
		Check: checkV2beta1,
	}
}

// partsV2beta1 returns the parts of a job. When a node evicts a worker, the operator
// writes condition Failed although the job continues: the end is final only with a
// completion time. The operator deletes the workers before it writes condition Suspended;
// the controller of batch Jobs deletes the launcher's pod after that. While the job is
// suspended, each sync of the operator counts that pod.
func partsV2beta1(job *mpi.MPIJob) kubeflow.Parts {
	policy, status := &job.Spec.RunPolicy, &job.Status
	parts := kubeflow.Parts{
		Suspend:        ptr.Deref(policy.Suspend, false),
		ManagedBy:      ptr.Deref(policy.ManagedBy, ""),
		CleanPodPolicy: string(ptr.Deref(policy.CleanPodPolicy, "")),
		Replicas:       make(map[training.ReplicaType]*kubeflow.Replicas, len(job.Spec.MPIReplicaSpecs)),
		Up:             make(map[training.ReplicaType]int32, len(status.ReplicaStatuses)),
		Started:        status.StartTime != nil,
		Provisional:    status.CompletionTime == nil,
	}
	if policy.SchedulingPolicy != nil {
		parts.PriorityClass = policy.SchedulingPolicy.PriorityClass
	}
	for role, spec := range job.Spec.MPIReplicaSpecs {
		parts.Replicas[training.ReplicaType(role)] = nil
		if spec != nil {
			parts.Replicas[training.ReplicaType(role)] = &kubeflow.Replicas{Count: spec.Replicas, Template: &spec.Template}
		}
	}
	for role, pods := range status.ReplicaStatuses {
		if pods != nil {
			parts.Up[training.ReplicaType(role)] = pods.Active + pods.Succeeded
		}
	}
	if launcher := status.ReplicaStatuses[mpi.MPIReplicaTypeLauncher]; launcher != nil {
		parts.PodsRemain = launcher.Active > 0
	}
	for _, c := range status.Conditions {
		parts.Conditions = append(parts.Conditions, training.JobCondition{
			Type: training.JobConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
			LastUpdateTime: c.LastUpdateTime, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return parts
}

// checkV2beta1 applies the operator's own validation. The operator ignores an invalid job
// and reports it at most by an event.
func checkV2beta1(job *mpi.MPIJob) error {
	filled := job.DeepCopy()
	mpi.SetDefaults_MPIJob(filled)
	if broken := validation.ValidateMPIJob(filled); len(broken) > 0 {
		return fmt.Errorf("the MPI operator rejects the job: %w", broken.ToAggregate())
	}
	return nil
}
