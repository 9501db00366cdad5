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

// V2beta1 returns the adapter of kubeflow.org/v2beta1. Its launcher is the pod of
// a batch Job, which the operator suspends and resumes with the MPIJob; it adds no
// container to any pod, and starts workers as well where the launcher works too.
func V2beta1() framework.Adapter {
	return kubeflow.Base[*mpi.MPIJob]{
		Named: framework.Kind{
			Name:             "mpiv2beta1",
			GroupVersionKind: mpi.SchemeGroupVersion.WithKind(mpi.Kind),
			Resource:         training.MPIJobPlural,
			SuspendPath:      kubeflow.SuspendPath(),
			ManagedBy:        mpi.KubeflowJobController,
			Sets:             []framework.Setting{kubeflow.CleanPodPolicy()},
			Doc: framework.Doc{
				Shows:  "condition `Queuing`; kubectl has no column for it",
				Counts: "replicas of all roles",
				Frees:  "Succeeded or Failed, and `completionTime`",
				Stops:  "condition Suspended, and no active launcher",
			},
		},
		Field: replicasField,
		Roles: roles(),
		Empty: func() *mpi.MPIJob { return &mpi.MPIJob{} },
		Parts: partsV2beta1,
		Check: checkV2beta1,
	}
}

// partsV2beta1. A worker that a node evicts has the job say that it failed, and go
// on all the same: only with the time of completion is that the end. Workers are
// deleted before the job says that it is suspended, the launcher's pod after that,
// by the controller of batch Jobs; as long as the job is suspended, the operator
// counts that pod again each time.
func partsV2beta1(job *mpi.MPIJob) kubeflow.Parts {
	policy, status := &job.Spec.RunPolicy, &job.Status
	parts := kubeflow.Parts{
		Suspend:        ptr.Deref(policy.Suspend, false),
		ManagedBy:      ptr.Deref(policy.ManagedBy, ""),
		CleanPodPolicy: string(ptr.Deref(policy.CleanPodPolicy, "")),
		Replicas:       make(map[training.ReplicaType]*kubeflow.Replicas, len(job.Spec.MPIReplicaSpecs)),
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

// checkV2beta1 asks the operator's own rules, by which it leaves a job alone that
// breaks one, with an event at most.
func checkV2beta1(job *mpi.MPIJob) error {
	filled := job.DeepCopy()
	mpi.SetDefaults_MPIJob(filled)
	if broken := validation.ValidateMPIJob(filled); len(broken) > 0 {
		return fmt.Errorf("the MPI operator would not run it: %w", broken.ToAggregate())
	}
	return nil
}
