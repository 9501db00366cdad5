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

// Pods lists the replicas in the order of roles.
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
	pods := framework.Pods{PriorityClassName: parts.PriorityClass}
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
			Name: strings.ToLower(string(role.Name)), Count: ptr.Deref(replicas.Count, role.Unset), Template: template,
		})
	}
	return pods, nil
}

// byRole sorts the replicas by the role that is meant. A job that has none at all
// would be taken by the operators, and never end.
func (b Base[T]) byRole(given map[training.ReplicaType]*Replicas) (map[training.ReplicaType]*Replicas, error) {
	if len(given) == 0 {
		return nil, fmt.Errorf("spec.%s is empty: give the replicas of at least one of %s", b.Field, b.roleNames())
	}
	byRole := make(map[training.ReplicaType]*Replicas, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		role, known := b.role(name)
		switch {
		case !known:
			return nil, fmt.Errorf("kind %s has no replicas of type %q, only %s", b.Named.Kind, name, b.roleNames())
		case name != role && !b.AnyCase:
			return nil, fmt.Errorf("kind %s has no replicas of type %q: write %q", b.Named.Kind, name, role)
		case byRole[role] != nil:
			return nil, fmt.Errorf("replicas of type %q are given twice", role)
		case given[name] == nil:
			return nil, fmt.Errorf("replicas of type %q are empty", name)
		case len(given[name].Template.Spec.Containers) == 0:
			return nil, fmt.Errorf("replicas of type %q have no containers: spec.%s.%s.template.spec.containers must name at least one", name, b.Field, name)
		}
		byRole[role] = given[name]
	}
	return byRole, nil
}

// role finds the role that a name in any case means.
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
