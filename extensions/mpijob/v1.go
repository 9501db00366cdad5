// Package mpijob holds the adapters of MPIJob: kubeflow.org/v1, which the training
// operator runs, and kubeflow.org/v2beta1, which the MPI operator runs. They are
// one resource, and a cluster has one of the two operators.
//
// Both have a launcher, one pod that starts the program and reports its result, and
// workers. Unlike TFJobs, role names are case-sensitive. Both operators reject a job
// without a launcher, after its creation.
package mpijob

import (
	"errors"
	"fmt"
	"slices"

	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/kubeflow"
)

// replicasField is the field with the replicas in both versions.
const replicasField = "mpiReplicaSpecs"

// launcherJob is the kind of the launcher of v2beta1. Both versions are one kind.
func launcherJob() []schema.GroupKind {
	return []schema.GroupKind{{Group: batchv1.GroupName, Kind: "Job"}}
}

// fence returns the fence of both versions. Both operators look at suspend only if the job is valid.
func fence() framework.Fence {
	return framework.Fence{
		Frozen: [][]string{{"spec", replicasField, string(training.MPIJobReplicaTypeLauncher)}},
		Valid: []framework.Condition{{
			Name: "spec.slotsPerWorker, the number of workers, and spec.runPolicy",
			Expression: `job.apiVersion != 'kubeflow.org/v2beta1'
|| (job.spec.?slotsPerWorker.orValue(0) >= 0 && job.spec.?runPolicy.?ttlSecondsAfterFinished.orValue(0) >= 0
  && job.spec.?runPolicy.?activeDeadlineSeconds.orValue(0) >= 0 && job.spec.?runPolicy.?backoffLimit.orValue(0) >= 0
  && job.spec.?runPolicy.?cleanPodPolicy.orValue('None') in ['None', 'Running', 'All']
  && (!job.spec.?mpiReplicaSpecs.?Worker.hasValue() || job.spec.?mpiReplicaSpecs.?Worker.?replicas.orValue(0) > 0))`,
		}},
	}
}

// roles of both versions.
func roles() []kubeflow.Role {
	return []kubeflow.Role{
		{Name: training.MPIJobReplicaTypeLauncher, Unset: 1},
		{Name: training.MPIJobReplicaTypeWorker, Unset: 0},
	}
}

// V1 returns the adapter of kubeflow.org/v1.
func V1() framework.Adapter {
	return kubeflow.Base[*training.MPIJob]{
		Named:  kindV1(),
		Field:  replicasField,
		Roles:  roles(),
		Empty:  func() *training.MPIJob { return &training.MPIJob{} },
		Parts:  partsV1,
		Check:  checkV1,
		Inject: injectV1,
	}
}

// kindV1 returns the kind. The policy that deletes pods has an older place: see partsV1.
func kindV1() framework.Kind {
	kind := kubeflow.TrainingKind("mpiv1", training.MPIJobKind, training.MPIJobPlural)
	kind.Parts = launcherJob()
	kind.Fence = fence()
	policy := kubeflow.CleanPodPolicy()
	policy.OlderPath = []string{"spec", "cleanPodPolicy"}
	kind.Sets = []framework.Setting{policy}
	return kind
}

// partsV1 returns the parts of a job. The policy that deletes pods has an older place,
// which is used if the run policy does not contain it.
func partsV1(job *training.MPIJob) kubeflow.Parts {
	parts := kubeflow.TrainingParts(&job.Spec.RunPolicy, job.Spec.MPIReplicaSpecs, &job.Status)
	if job.Spec.RunPolicy.CleanPodPolicy == nil {
		parts.CleanPodPolicy = string(ptr.Deref(job.Spec.CleanPodPolicy, ""))
	}
	return parts
}

func checkV1(job *training.MPIJob) error {
	launcher := job.Spec.MPIReplicaSpecs[training.MPIJobReplicaTypeLauncher]
	switch {
	case launcher == nil:
		return errors.New("spec.mpiReplicaSpecs has no Launcher; add one with 1 replica")
	case ptr.Deref(launcher.Replicas, 1) != 1:
		return fmt.Errorf("spec.mpiReplicaSpecs.Launcher.replicas must be 1, not %d", *launcher.Replicas)
	}
	return nil
}

// injectV1 adds the operator's init container, which delivers kubectl to the launcher.
// The launcher starts the program on the workers with it.
func injectV1(_ *training.MPIJob, role training.ReplicaType, template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	if role != training.MPIJobReplicaTypeLauncher {
		return template
	}
	amounts := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("100m"),
		corev1.ResourceMemory:           resource.MustParse("512Mi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("5Gi"),
	}
	injected := *template
	injected.Spec.InitContainers = append(slices.Clone(template.Spec.InitContainers), corev1.Container{
		Name:      "kubectl-delivery",
		Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts},
	})
	return &injected
}
