// Package kubeflow is what the adapters of the training operator's kinds share:
// replica specs by role, a run policy, and a status with a list of conditions.
//
// The CRDs describe these objects down to the containers, but not all that they
// let through can be decoded (quantities); the framework decodes each object on
// its own. Fields of status.replicaStatuses are never read: the operator leaves
// them stale.
package kubeflow

import (
	"fmt"
	"slices"
	"strings"

	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// Parts are the parts of a job that all the operator's kinds have.
type Parts struct {
	RunPolicy *training.RunPolicy
	Replicas  map[training.ReplicaType]*training.ReplicaSpec
	Status    *training.JobStatus
}

// Base is the adapter of a kind, but for what Parts and Inject say.
type Base[T framework.Object] struct {
	Name     string
	KindName string
	Resource string
	// Roles in their fixed order: pod sets are listed, and the priority class is
	// looked for, in it.
	Roles []training.ReplicaType
	// Empty makes a job to decode into.
	Empty func() T
	// Parts takes a job apart.
	Parts func(T) Parts
	// Inject returns what the operator makes of a template. It may be nil.
	Inject func(job T, role training.ReplicaType, template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec
}

// Kind says how the kind is called.
func (b Base[T]) Kind() framework.Kind {
	return framework.Kind{
		Name:             b.Name,
		GroupVersionKind: training.SchemeGroupVersion.WithKind(b.KindName),
		Resource:         b.Resource,
		ManagedBy:        training.KubeflowJobsController,
	}
}

// New makes an empty job.
func (b Base[T]) New() framework.Object { return b.Empty() }

// parts takes a job apart; one of another kind has none.
func (b Base[T]) parts(object framework.Object) (T, Parts) {
	job, known := object.(T)
	if !known {
		return job, Parts{RunPolicy: &training.RunPolicy{}, Status: &training.JobStatus{}}
	}
	return job, b.Parts(job)
}

// See says what the job looks like.
func (b Base[T]) See(object framework.Object) framework.Sight {
	_, parts := b.parts(object)
	status := parts.Status
	return framework.Sight{
		Suspended: ptr.Deref(parts.RunPolicy.Suspend, false),
		ManagedBy: ptr.Deref(parts.RunPolicy.ManagedBy, ""),
		Started:   status.StartTime != nil,
		Running:   condition(status, training.JobRunning) != nil,
		// The operator writes it after it has deleted all pods.
		Stopped: condition(status, training.JobSuspended) != nil,
		End:     end(status),
		Queuing: queuing(status),
	}
}

func end(status *training.JobStatus) *framework.End {
	if c := condition(status, training.JobSucceeded); c != nil {
		return &framework.End{Succeeded: true, Reason: c.Reason, Message: c.Message}
	}
	if c := condition(status, training.JobFailed); c != nil {
		return &framework.End{Reason: c.Reason, Message: c.Message}
	}
	return nil
}

// condition finds a condition that is true.
func condition(status *training.JobStatus, name training.JobConditionType) *training.JobCondition {
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == name && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// Pods lists the replicas in the order of roles. The operator takes the names of
// roles in any case, so they are compared that way.
func (b Base[T]) Pods(object framework.Object) (framework.Pods, error) {
	job, parts := b.parts(object)
	byRole := make(map[training.ReplicaType]*training.ReplicaSpec, len(parts.Replicas))
	for _, given := range sortedRoles(parts.Replicas) {
		role, known := b.role(given)
		switch {
		case !known:
			return framework.Pods{}, fmt.Errorf("a %s has no replicas of type %q, only %s", b.KindName, given, b.roleNames())
		case byRole[role] != nil:
			return framework.Pods{}, fmt.Errorf("replicas of type %q are given twice", role)
		case parts.Replicas[given] == nil:
			return framework.Pods{}, fmt.Errorf("replicas of type %q are empty", given)
		}
		byRole[role] = parts.Replicas[given]
	}
	pods := framework.Pods{}
	if parts.RunPolicy.SchedulingPolicy != nil {
		pods.PriorityClassName = parts.RunPolicy.SchedulingPolicy.PriorityClass
	}
	for _, role := range b.Roles {
		spec := byRole[role]
		if spec == nil {
			continue
		}
		template := &spec.Template
		if b.Inject != nil {
			template = b.Inject(job, role, template)
		}
		pods.Sets = append(pods.Sets, framework.PodSet{
			Name: strings.ToLower(string(role)), Count: ptr.Deref(spec.Replicas, 1), Template: template,
		})
	}
	return pods, nil
}

// role finds the role that a name in any case means.
func (b Base[T]) role(given training.ReplicaType) (training.ReplicaType, bool) {
	for _, role := range b.Roles {
		if strings.EqualFold(string(role), string(given)) {
			return role, true
		}
	}
	return "", false
}

func (b Base[T]) roleNames() string {
	names := make([]string, len(b.Roles))
	for i, role := range b.Roles {
		names[i] = string(role)
	}
	return strings.Join(names, ", ")
}

func sortedRoles(replicas map[training.ReplicaType]*training.ReplicaSpec) []training.ReplicaType {
	roles := make([]training.ReplicaType, 0, len(replicas))
	for role := range replicas {
		roles = append(roles, role)
	}
	slices.Sort(roles)
	return roles
}

// Templates are those of all replicas.
func (b Base[T]) Templates(object framework.Object) []*corev1.PodTemplateSpec {
	_, parts := b.parts(object)
	var templates []*corev1.PodTemplateSpec
	for _, spec := range parts.Replicas {
		if spec != nil {
			templates = append(templates, &spec.Template)
		}
	}
	return templates
}

// SuspendPatch sets the run policy. Unless told otherwise the operator leaves
// pods behind that run for ever, as parameter servers do, so a job that is held
// gets the policy that ends them, as the hold policy at admission gives it.
func (b Base[T]) SuspendPatch(object framework.Object, suspend bool) map[string]any {
	_, parts := b.parts(object)
	runPolicy := map[string]any{"suspend": suspend}
	if suspend && ptr.Deref(parts.RunPolicy.CleanPodPolicy, "") == "" {
		runPolicy["cleanPodPolicy"] = training.CleanPodPolicyRunning
	}
	return map[string]any{"spec": map[string]any{"runPolicy": runPolicy}}
}
