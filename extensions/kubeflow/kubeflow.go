// Package kubeflow is what the adapters of Kubeflow's kinds share: replicas by
// role, a run policy, and a status with a list of conditions.
//
// Two operators run these kinds, each with Go types of its own that mean the same.
// Parts are their common form; each adapter fills them.
//
// The CRDs describe these objects down to the containers, but not all that they
// let through can be decoded (quantities); the framework decodes each object on
// its own. What status.replicaStatuses say of the end is never read: the training
// operator leaves them stale.
package kubeflow

import (
	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// Parts are the parts of a job that all these kinds have.
type Parts struct {
	Suspend bool
	// ManagedBy, CleanPodPolicy and the PriorityClass of the job's own scheduling
	// policy; empty where they are not set.
	ManagedBy, CleanPodPolicy, PriorityClass string
	// Replicas by role, as they are given; nil where a role has nothing.
	Replicas map[training.ReplicaType]*Replicas
	// Started: the operator has written when the job began.
	Started    bool
	Conditions []training.JobCondition
	// Provisional: a condition that says that the job has ended may yet be taken back.
	Provisional bool
	// PodsRemain of the job, even where it is said to be suspended.
	PodsRemain bool
}

// Replicas are the equal pods of a role.
type Replicas struct {
	Count    *int32
	Template *corev1.PodTemplateSpec
}

// Role is a role that a kind has.
type Role struct {
	Name training.ReplicaType
	// Unset is how many replicas there are where no number is given.
	Unset int32
}

// Base is the adapter of a kind, but for what its functions say.
type Base[T framework.Object] struct {
	Named framework.Kind
	// Field of the spec that holds the replicas.
	Field string
	// Roles in their fixed order: pod sets are listed, and the priority class is
	// looked for, in it.
	Roles []Role
	// AnyCase: the operator takes the names of roles in any case.
	AnyCase bool
	// Empty makes a job to decode into.
	Empty func() T
	// Parts takes a job apart.
	Parts func(T) Parts
	// Check says what else the operator would refuse for good. It may be nil.
	Check func(T) error
	// Inject returns what the operator makes of a template. It may be nil.
	Inject func(job T, role training.ReplicaType, template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec
}

// SuspendPath is where all these kinds have their suspend field.
func SuspendPath() []string { return []string{"spec", "runPolicy", "suspend"} }

// CleanPodPolicy is what a hold sets of all these kinds.
func CleanPodPolicy() framework.Setting {
	return framework.Setting{
		Path: []string{"spec", "runPolicy", "cleanPodPolicy"}, Value: string(training.CleanPodPolicyRunning),
		Why: "Unless cleanPodPolicy says otherwise, the operator leaves pods that run for ever, such as parameter servers and workers, and they keep the quota in use.",
	}
}

// Kind says how the kind is called.
func (b Base[T]) Kind() framework.Kind { return b.Named }

// New makes an empty job.
func (b Base[T]) New() framework.Object { return b.Empty() }

// parts takes a job apart; one of another kind has none.
func (b Base[T]) parts(object framework.Object) Parts {
	job, known := object.(T)
	if !known {
		return Parts{}
	}
	return b.Parts(job)
}

// State says what the job looks like.
func (b Base[T]) State(object framework.Object) framework.JobState {
	parts := b.parts(object)
	return framework.JobState{
		Suspended: parts.Suspend,
		ManagedBy: parts.ManagedBy,
		Started:   parts.Started,
		Running:   condition(parts, training.JobRunning) != nil,
		// The operators write it after they have deleted all pods.
		Stopped: condition(parts, training.JobSuspended) != nil && !parts.PodsRemain,
		End:     end(parts),
		Queuing: queuing(parts),
	}
}

func end(parts Parts) *framework.End {
	if parts.Provisional {
		return nil
	}
	if c := condition(parts, training.JobSucceeded); c != nil {
		return &framework.End{Succeeded: true, Reason: c.Reason, Message: c.Message}
	}
	if c := condition(parts, training.JobFailed); c != nil {
		return &framework.End{Reason: c.Reason, Message: c.Message}
	}
	return nil
}

// condition finds a condition that is true.
func condition(parts Parts, name training.JobConditionType) *training.JobCondition {
	for i := range parts.Conditions {
		if c := &parts.Conditions[i]; c.Type == name && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// Templates are those of all replicas.
func (b Base[T]) Templates(object framework.Object) []*corev1.PodTemplateSpec {
	var templates []*corev1.PodTemplateSpec
	for _, replicas := range b.parts(object).Replicas {
		if replicas != nil {
			templates = append(templates, replicas.Template)
		}
	}
	return templates
}

// SuspendPatch sets the run policy. Unless configured otherwise the operators leave
// pods behind that run for ever, as parameter servers do, so a job that is held
// gets the policy that ends them, as the hold policy at admission gives it.
func (b Base[T]) SuspendPatch(object framework.Object, suspend bool) map[string]any {
	runPolicy := map[string]any{"suspend": suspend}
	if suspend && b.parts(object).CleanPodPolicy == "" {
		runPolicy["cleanPodPolicy"] = training.CleanPodPolicyRunning
	}
	return map[string]any{"spec": map[string]any{"runPolicy": runPolicy}}
}
