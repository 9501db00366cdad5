// Package paddlejob is the adapter of kubeflow.org/v1 PaddleJob.
//
// The operator adds no requests to its pods. The elasticPolicy does not change the number
// of pods: nothing scales a PaddleJob.
package paddlejob

import (
	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/kubeflow"
)

// New returns the adapter.
func New() framework.Adapter {
	return kubeflow.Base[*training.PaddleJob]{
		Named:  kubeflow.TrainingKind("paddlejob", training.PaddleJobKind, training.PaddleJobPlural),
		Field:  "paddleReplicaSpecs",
		Scaled: training.PaddleJobReplicaTypeWorker,
		Roles: []kubeflow.Role{
			{Name: training.PaddleJobReplicaTypeMaster, Unset: 1},
			{Name: training.PaddleJobReplicaTypeWorker, Unset: 1},
		},
		AnyCase: true,
		Empty:   func() *training.PaddleJob { return &training.PaddleJob{} },
		Parts: func(job *training.PaddleJob) kubeflow.Parts {
			return kubeflow.TrainingParts(&job.Spec.RunPolicy, job.Spec.PaddleReplicaSpecs, &job.Status)
		},
	}
}
