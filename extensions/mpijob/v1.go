// Package mpijob holds the adapters of MPIJob: kubeflow.org/v1, which the training
// operator runs, and kubeflow.org/v2beta1, which the MPI operator runs. They are
// one resource, and a cluster has one of the two operators.
//
// Both know a launcher, one pod that starts the program and reports how it ended,
// and workers. Other than of TFJobs, they take the names of roles as they are
// written only, and refuse a job without a launcher, after it was created.
package mpijob

import (
	"errors"
	"fmt"
	"slices"

	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/kubeflow"
)

// replicasField is where both versions have their replicas.
const replicasField = "mpiReplicaSpecs"

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

// kindV1: the policy that ends pods has an older place, see partsV1.
func kindV1() framework.Kind {
	kind := kubeflow.TrainingKind("mpiv1", training.MPIJobKind, training.MPIJobPlural)
	policy := kubeflow.CleanPodPolicy()
	policy.OlderPath = []string{"spec", "cleanPodPolicy"}
	kind.Sets = []framework.Setting{policy}
	return kind
}

// partsV1: the policy that ends pods has an older place too, which counts where
// the run policy has none.
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
		return errors.New("spec.mpiReplicaSpecs has no Launcher: an MPIJob needs one, of one replica")
	case ptr.Deref(launcher.Replicas, 1) != 1:
		return fmt.Errorf("spec.mpiReplicaSpecs.Launcher.replicas must be 1, not %d", *launcher.Replicas)
	}
	return nil
}

// injectV1 adds the init container that brings kubectl to the launcher, with which
// it starts the program on the workers.
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
