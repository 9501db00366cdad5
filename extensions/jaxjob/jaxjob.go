// Package jaxjob is the adapter of kubeflow.org/v1 JAXJob.
//
// A JAXJob has only Workers; the first Worker is the coordinator. The training operator ignores managedBy in a JAXJob,
// unlike in other kinds. So the adapter ignores it too: otherwise a marked job with a foreign managedBy would run
// without being queued.
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
		Scaled:  training.JAXJobReplicaTypeWorker,
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
