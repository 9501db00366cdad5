package trainjob

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// managedBy is the value of spec.managedBy of a TrainJob that Trainer itself runs.
const managedBy = "trainer.kubeflow.org/trainjob-controller"

// manager is the manager of the runtime patch of kube-queue in a TrainJob.
const manager = "kube-queue.dev/job-extensions"

// defaultRuntime is the kind of a runtime that is referenced without a kind.
const defaultRuntime = "ClusterTrainingRuntime"

// Conditions of a TrainJob.
const (
	conditionSuspended = "Suspended"
	conditionComplete  = "Complete"
	conditionFailed    = "Failed"
)

// reasonRuntimeNotSupported of condition Failed is not final.
const reasonRuntimeNotSupported = "TrainingRuntimeNotSupported"

// TrainJob has the fields of a TrainJob that are used. The others, which differ between
// versions of Trainer, describe how to create its JobSet.
type TrainJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec,omitempty"`
	Status Status `json:"status,omitempty"`
}

// Spec of a TrainJob.
type Spec struct {
	RuntimeRef RuntimeRef `json:"runtimeRef,omitempty"`
	Suspend    *bool      `json:"suspend,omitempty"`
	ManagedBy  *string    `json:"managedBy,omitempty"`
}

// RuntimeRef names the runtime of a TrainJob.
type RuntimeRef struct {
	Name string `json:"name,omitempty"`
	Kind string `json:"kind,omitempty"`
}

// Status of a TrainJob.
type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

func (j *TrainJob) DeepCopyObject() runtime.Object {
	out := *j
	j.DeepCopyInto(&out.ObjectMeta)
	if j.Spec.Suspend != nil {
		out.Spec.Suspend = new(*j.Spec.Suspend)
	}
	if j.Spec.ManagedBy != nil {
		out.Spec.ManagedBy = new(*j.Spec.ManagedBy)
	}
	out.Status.Conditions = slices.Clone(j.Status.Conditions)
	return &out
}
