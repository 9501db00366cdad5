// Package tfjob is the adapter of kubeflow.org/v1 TFJob.
package tfjob

import (
	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/kubeflow"
)

// New returns the adapter.
func New() framework.Adapter {
	return kubeflow.Base[*training.TFJob]{
		Named: kubeflow.TrainingKind("tfjob", training.TFJobKind, training.TFJobPlural),
		Field: "tfReplicaSpecs",
		Roles: []kubeflow.Role{
			{Name: training.TFJobReplicaTypeChief, Unset: 1},
			{Name: training.TFJobReplicaTypeMaster, Unset: 1},
			{Name: training.TFJobReplicaTypePS, Unset: 1},
			{Name: training.TFJobReplicaTypeWorker, Unset: 1},
			{Name: training.TFJobReplicaTypeEval, Unset: 1},
		},
		AnyCase: true,
		Empty:   func() *training.TFJob { return &training.TFJob{} },
		Parts: func(job *training.TFJob) kubeflow.Parts {
			return kubeflow.TrainingParts(&job.Spec.RunPolicy, job.Spec.TFReplicaSpecs, &job.Status)
		},
	}
}
