package trainjob

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// managedBy is what spec.managedBy of a TrainJob says that Trainer itself runs.
const managedBy = "trainer.kubeflow.org/trainjob-controller"

// defaultRuntime is the kind of a runtime that is named without one.
const defaultRuntime = "ClusterTrainingRuntime"

// Conditions of a TrainJob.
const (
	conditionSuspended = "Suspended"
	conditionComplete  = "Complete"
	conditionFailed    = "Failed"
)

// reasonRuntimeNotSupported of condition Failed is not final.
const reasonRuntimeNotSupported = "TrainingRuntimeNotSupported"

// TrainJob is what is read of a TrainJob. The rest of it, which differs between
// versions of Trainer, says how to make its JobSet.
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

// RuntimeRef names the runtime that a TrainJob is made with.
type RuntimeRef struct {
	Name string `json:"name,omitempty"`
	Kind string `json:"kind,omitempty"`
}

// Status of a TrainJob.
type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopyObject copies the TrainJob.
func (j *TrainJob) DeepCopyObject() runtime.Object {
	out := *j
	j.DeepCopyInto(&out.ObjectMeta)
	if j.Spec.Suspend != nil {
		out.Spec.Suspend = ptr.To(*j.Spec.Suspend)
	}
	if j.Spec.ManagedBy != nil {
		out.Spec.ManagedBy = ptr.To(*j.Spec.ManagedBy)
	}
	out.Status.Conditions = slices.Clone(j.Status.Conditions)
	return &out
}
