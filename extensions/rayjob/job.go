package rayjob

import (
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// job is a RayJob of any version of KubeRay.
type job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              spec               `json:"spec,omitempty"`
	Status            rayv1.RayJobStatus `json:"status,omitempty"`
}

type spec struct {
	rayv1.RayJobSpec `json:",inline"`
	// DeletionPolicy is what deletionStrategy was called before KubeRay 1.4.
	DeletionPolicy rayv1.DeletionPolicyType `json:"deletionPolicy,omitempty"`
}

// deletes reports whether the owner has set what to delete when the job ends.
func (s *spec) deletes() bool { return s.DeletionStrategy != nil || s.DeletionPolicy != "" }

// policy returns what the owner of an ended job has set to delete, if anything.
func (j *job) policy() rayv1.DeletionPolicyType {
	strategy := j.Spec.DeletionStrategy
	if strategy == nil {
		return j.Spec.DeletionPolicy
	}
	policy := strategy.OnFailure
	if j.Status.JobStatus == rayv1.JobStatusSucceeded {
		policy = strategy.OnSuccess
	}
	if policy == nil {
		return ""
	}
	return ptr.Deref(policy.Policy, "")
}

// DeepCopyObject implements runtime.Object.
func (j *job) DeepCopyObject() runtime.Object {
	copied := *j
	j.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	j.Spec.RayJobSpec.DeepCopyInto(&copied.Spec.RayJobSpec)
	j.Status.DeepCopyInto(&copied.Status)
	return &copied
}
