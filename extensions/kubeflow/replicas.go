package kubeflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
)

// Pods returns the replicas in the order of roles.
func (b Base[T]) Pods(object framework.Object) (framework.Pods, error) {
	job, known := object.(T)
	if !known {
		return framework.Pods{}, nil
	}
	parts := b.Parts(job)
	byRole, err := b.byRole(parts.Replicas)
	if err != nil {
		return framework.Pods{}, err
	}
	if b.Check != nil {
		if err := b.Check(job); err != nil {
			return framework.Pods{}, err
		}
	}
	pods := framework.Pods{PriorityClassName: parts.PriorityClass, PriorityClassField: "spec.runPolicy.schedulingPolicy.priorityClass"}
	for _, role := range b.Roles {
		replicas := byRole[role.Name]
		if replicas == nil {
			continue
		}
		template := replicas.Template
		if b.Inject != nil {
			template = b.Inject(job, role.Name, template)
		}
		pods.Sets = append(pods.Sets, framework.PodSet{
			Name: setName(string(role.Name)), Count: ptr.Deref(replicas.Count, role.Unset), Template: template,
		})
	}
	return pods, nil
}

// byRole returns the replicas by canonical role name. The operators accept a job without
// any replicas, but it never ends.
func (b Base[T]) byRole(given map[training.ReplicaType]*Replicas) (map[training.ReplicaType]*Replicas, error) {
	if len(given) == 0 {
		return nil, fmt.Errorf("spec.%s is empty; add at least one of %s", b.Field, b.roleNames())
	}
	byRole := make(map[training.ReplicaType]*Replicas, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		role, known := b.role(name)
		switch {
		case !known:
			return nil, fmt.Errorf("spec.%s: kind %s has no replica type %q; known types: %s", b.Field, b.Named.Kind, name, b.roleNames())
		case name != role && !b.AnyCase:
			return nil, fmt.Errorf("spec.%s: kind %s has no replica type %q; write %q", b.Field, b.Named.Kind, name, role)
		case byRole[role] != nil:
			return nil, fmt.Errorf("spec.%s: replica type %q is given twice; remove one", b.Field, role)
		case given[name] == nil:
			return nil, fmt.Errorf("spec.%s: replica type %q is empty; set its template", b.Field, name)
		case len(given[name].Template.Spec.Containers) == 0:
			return nil, fmt.Errorf("spec.%s.%s.template.spec.containers is empty; add at least one container", b.Field, name)
		}
		byRole[role] = given[name]
	}
	return byRole, nil
}

// setName returns the name of the pod set of a role, which can be in any case.
func setName(role string) string { return strings.ToLower(role) }

func setNames(roles []string) []string {
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = setName(role)
	}
	return names
}

// role returns the role of a name in any case.
func (b Base[T]) role(given training.ReplicaType) (training.ReplicaType, bool) {
	for _, role := range b.Roles {
		if strings.EqualFold(string(role.Name), string(given)) {
			return role.Name, true
		}
	}
	return "", false
}

func (b Base[T]) roleNames() string {
	names := make([]string, len(b.Roles))
	for i, role := range b.Roles {
		names[i] = string(role.Name)
	}
	return strings.Join(names, ", ")
}
