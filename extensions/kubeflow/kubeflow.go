// Package kubeflow is the common part of the adapters of Kubeflow's kinds: replicas by
// role, a run policy, and a status with a list of conditions.
//
// Two operators run these kinds, with equivalent Go types of their own. Parts is their
// common form; each adapter fills it.
//
// The CRDs describe these objects down to the containers, but some objects that they
// accept cannot be decoded (quantities); the framework decodes each object separately.
// The end of a job is never read from status.replicaStatuses: the training operator
// leaves them stale.
package kubeflow

import (
	"fmt"
	"slices"

	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// Parts are the parts of a job that all these kinds have.
type Parts struct {
	Suspend bool
	// ManagedBy, CleanPodPolicy and the PriorityClass of the job's own scheduling
	// policy; empty where they are not set.
	ManagedBy, CleanPodPolicy, PriorityClass string
	// Replicas by role, as given; nil if the value of a role is null.
	Replicas map[training.ReplicaType]*Replicas
	// Started: the operator has written the start time.
	Started    bool
	Conditions []training.JobCondition
	// Provisional: a condition that the job has ended is not final yet.
	Provisional bool
	// Up is the number of pods of each role that run or have succeeded.
	Up map[training.ReplicaType]int32
	// PodsRemain: pods of the job exist, even if it is reported as suspended.
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
	// Unset is the number of replicas if none is given.
	Unset int32
}

// Base is the adapter of a kind, parametrised by its fields and functions.
type Base[T framework.Object] struct {
	Named framework.Kind
	// Field of the spec that holds the replicas.
	Field string
	// Roles in their fixed order: the order of pod sets, and of the search for a
	// PriorityClass.
	Roles []Role
	// AnyCase: the operator accepts the names of roles in any case.
	AnyCase bool
	// Scaled is the role whose replicas the subresource scale sets; empty for none.
	Scaled training.ReplicaType
	// Elastic and Most are those of framework.Groups.
	Elastic, Most string
	// Needs returns how many pods of the Scaled role the job needs and, if it needs all, why; see
	// framework.ElasticReader. If it is nil, jobs of the kind always need all.
	Needs func(T) (least int32, why string)
	// Empty returns an empty job to decode into.
	Empty func() T
	// Parts returns the parts of a job.
	Parts func(T) Parts
	// Check returns an error for anything else that the operator permanently rejects. It can be nil.
	Check func(T) error
	// Inject returns the template with the operator's additions. It can be nil.
	Inject func(job T, role training.ReplicaType, template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec
}

// SuspendPath returns the path of the suspend field of these kinds.
func SuspendPath() []string { return []string{"spec", "runPolicy", "suspend"} }

// CleanPodPolicy returns the field that a hold sets for these kinds.
func CleanPodPolicy() framework.Setting {
	return framework.Setting{
		Path: []string{"spec", "runPolicy", "cleanPodPolicy"}, Value: string(training.CleanPodPolicyRunning),
		Why: "If cleanPodPolicy is unset, the operator does not delete pods that never end, such as parameter servers and workers, and they keep the quota in use.",
	}
}

func (b Base[T]) Kind() framework.Kind {
	kind := b.Named
	replicas := []string{"spec", b.Field}
	kind.Fence.Groups = []framework.Groups{{
		// The last role is that of the workers. Roles with another default must be Frozen.
		Path: replicas, Sizes: []string{"replicas"}, Size: fmt.Sprintf("group.?replicas.orValue(%d)", b.Roles[len(b.Roles)-1].Unset),
		Elastic: b.Elastic, Most: b.Most,
	}}
	kind.Places = []framework.Place{{Path: replicas, Names: setNames, Below: []string{"template", "metadata", "annotations"}}}
	if b.Needs != nil {
		elastic := *b.Named.Elastic // several goroutines call Kind
		elastic.PodSet, elastic.Path = setName(string(b.Scaled)), append(slices.Clone(replicas), string(b.Scaled), "replicas")
		elastic.AnyCase = b.AnyCase
		kind.Elastic = &elastic
	}
	if b.Scaled != "" {
		kind.Fence.Scale = append(replicas, string(b.Scaled), "replicas")
	}
	kind.Fence.Ended = framework.Ended{Conditions: []string{string(training.JobSucceeded), string(training.JobFailed)}}
	return kind
}

// Least returns how many pods of the Scaled role the job needs.
func (b Base[T]) Least(object framework.Object) (int32, string) {
	job, known := object.(T)
	if !known || b.Needs == nil {
		return 0, ""
	}
	return b.Needs(job)
}

func (b Base[T]) New() framework.Object { return b.Empty() }

// parts returns the parts of a job; empty for an object of another kind.
func (b Base[T]) parts(object framework.Object) Parts {
	job, known := object.(T)
	if !known {
		return Parts{}
	}
	return b.Parts(job)
}

func (b Base[T]) State(object framework.Object) framework.JobState {
	parts := b.parts(object)
	return framework.JobState{
		Suspended: parts.Suspend,
		ManagedBy: parts.ManagedBy,
		Started:   parts.Started,
		Running:   condition(parts, training.JobRunning) != nil,
		Ready:     b.ready(parts),
		// The operators write this condition after they have deleted all pods.
		Stopped: condition(parts, training.JobSuspended) != nil && !parts.PodsRemain,
		End:     end(parts),
		Queuing: queuing(parts),
	}
}

// ready reports whether the pods of all roles run or have succeeded. The operators count pods in phase Running: the
// status does not show whether they are ready. While the job is suspended the counts may be outdated, but condition
// Running is false.
func (b Base[T]) ready(parts Parts) bool {
	if condition(parts, training.JobRunning) == nil {
		return false
	}
	byRole, err := b.byRole(parts.Replicas)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(b.Roles, func(role Role) bool {
		replicas := byRole[role.Name]
		return replicas != nil && parts.Up[role.Name] < ptr.Deref(replicas.Count, role.Unset)
	})
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

// condition returns the condition of the type if it is true.
func condition(parts Parts, name training.JobConditionType) *training.JobCondition {
	for i := range parts.Conditions {
		if c := &parts.Conditions[i]; c.Type == name && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func (b Base[T]) Templates(object framework.Object) []*corev1.PodTemplateSpec {
	var templates []*corev1.PodTemplateSpec
	for _, replicas := range b.parts(object).Replicas {
		if replicas != nil {
			templates = append(templates, replicas.Template)
		}
	}
	return templates
}

// SuspendPatch sets the run policy. By default the operators do not delete pods that never end, such as parameter
// servers. So a held job gets the policy that deletes them, which the hold policy also sets at admission.
func (b Base[T]) SuspendPatch(object framework.Object, suspend bool) map[string]any {
	runPolicy := map[string]any{"suspend": suspend}
	if suspend && b.parts(object).CleanPodPolicy == "" {
		runPolicy["cleanPodPolicy"] = training.CleanPodPolicyRunning
	}
	return map[string]any{"spec": map[string]any{"runPolicy": runPolicy}}
}
