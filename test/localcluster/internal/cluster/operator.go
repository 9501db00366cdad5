package cluster

import (
	"context"
	"maps"
	"slices"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
)

// operator is an unmodified operator that a cluster can run. Each operator has its own file, which
// registers it.
type operator struct {
	component build.Component
	// ports are the names of its ports. They are allocated as NAME-PORT.
	ports []string
	// needs are operators that it requires. They run with it.
	needs []string
	// companions are additional users, for stand-ins that run with it.
	companions []string
	// since is the first version of Kubernetes that accepts its CRDs, if not all known versions do.
	since string
	// prepare creates the objects that the operator needs at its start, and returns its parts,
	// which are started one after another. The ready check of the operator passes when it acts on a
	// job.
	prepare func(context.Context, *setup) ([]part, error)
}

// operators has the known operators by name, which is also the name of their user.
var operators = map[string]operator{}

// OperatorNames returns the names of the known operators.
func OperatorNames() []string { return slices.Sorted(maps.Keys(operators)) }

// allOperators returns the requested operators and those that they need.
func (c Config) allOperators() []string {
	all := slices.Clone(c.Operators)
	for i := 0; i < len(all); i++ {
		for _, name := range operators[all[i]].needs {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// Components returns the components of a cluster with this configuration.
func (c Config) Components() []build.Component {
	components := []build.Component{controlPlaneComponent(c.kubernetes())}
	if !c.OnlyAPI {
		components = append(components, kwokComponent())
	}
	for _, name := range c.allOperators() {
		components = append(components, operators[name].component)
	}
	return components
}

// AllComponents returns all components, with the control plane of a version of Kubernetes.
func AllComponents(kubernetes string) []build.Component {
	return Config{Kubernetes: kubernetes, Operators: OperatorNames()}.Components()
}

// Kubectl returns the path of the built kubectl.
func (c Config) Kubectl() string {
	return (&setup{config: c}).program(controlPlane, "kubectl")
}
