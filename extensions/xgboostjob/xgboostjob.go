// Package xgboostjob is the adapter of kubeflow.org/v1 XGBoostJob.
package xgboostjob

import (
	"errors"
	"fmt"
	"strings"

	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/kubeflow"
)

// New returns the adapter.
func New() framework.Adapter {
	return kubeflow.Base[*training.XGBoostJob]{
		Named: kubeflow.TrainingKind("xgboostjob", training.XGBoostJobKind, training.XGBoostJobPlural),
		Field: "xgbReplicaSpecs",
		Roles: []kubeflow.Role{
			{Name: training.XGBoostJobReplicaTypeMaster, Unset: 1},
			{Name: training.XGBoostJobReplicaTypeWorker, Unset: 1},
		},
		AnyCase: true,
		Empty:   func() *training.XGBoostJob { return &training.XGBoostJob{} },
		Parts: func(job *training.XGBoostJob) kubeflow.Parts {
			return kubeflow.TrainingParts(&job.Spec.RunPolicy, job.Spec.XGBReplicaSpecs, &job.Status)
		},
		Check: check,
	}
}

// check requires the one master that the operator's webhook requires. Without the
// webhook, the operator fails to create any pod of a job without a master.
func check(job *training.XGBoostJob) error {
	for name, spec := range job.Spec.XGBReplicaSpecs {
		if spec == nil || !strings.EqualFold(string(name), string(training.XGBoostJobReplicaTypeMaster)) {
			continue
		}
		if replicas := ptr.Deref(spec.Replicas, 1); replicas != 1 {
			return fmt.Errorf("spec.xgbReplicaSpecs.%s.replicas must be 1, not %d", name, replicas)
		}
		return nil
	}
	return errors.New("spec.xgbReplicaSpecs has no Master; add one with 1 replica")
}
