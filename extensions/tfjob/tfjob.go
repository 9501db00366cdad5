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
		Name: "tfjob", KindName: training.TFJobKind, Resource: training.TFJobPlural,
		Roles: []training.ReplicaType{
			training.TFJobReplicaTypeChief, training.TFJobReplicaTypeMaster, training.TFJobReplicaTypePS,
			training.TFJobReplicaTypeWorker, training.TFJobReplicaTypeEval,
		},
		Empty: func() *training.TFJob { return &training.TFJob{} },
		Parts: func(job *training.TFJob) kubeflow.Parts {
			return kubeflow.Parts{RunPolicy: &job.Spec.RunPolicy, Replicas: job.Spec.TFReplicaSpecs, Status: &job.Status}
		},
	}
}
