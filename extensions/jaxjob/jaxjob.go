// Package jaxjob is the adapter of kubeflow.org/v1 JAXJob.
//
// A JAXJob has Workers only, of which the first is the coordinator. Unlike the other
// kinds of the training operator it is run whatever its managedBy says, so the field
// is not read: a job that asked to be queued would run unqueued with it.
package jaxjob

import (
	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/kubeflow"
)

// New returns the adapter.
func New() framework.Adapter {
	kind := kubeflow.TrainingKind("jaxjob", training.JAXJobKind, training.JAXJobPlural)
	kind.ManagedBy = ""
	return kubeflow.Base[*training.JAXJob]{
		Named:   kind,
		Field:   "jaxReplicaSpecs",
		Roles:   []kubeflow.Role{{Name: training.JAXJobReplicaTypeWorker, Unset: 1}},
		AnyCase: true,
		Empty:   func() *training.JAXJob { return &training.JAXJob{} },
		Parts: func(job *training.JAXJob) kubeflow.Parts {
			parts := kubeflow.TrainingParts(&job.Spec.RunPolicy, job.Spec.JAXReplicaSpecs, &job.Status)
			parts.ManagedBy = ""
			return parts
		},
	}
}
