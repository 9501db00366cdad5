package cluster

import (
	"context"
	"maps"
	"slices"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
)

// operator is an unmodified operator of some kind of job that can be run along.
// Each one has a file of its own, which registers it.
type operator struct {
	component build.Component
	// ports are what it listens on; they are requested as NAME-PORT.
	ports []string
	// needs are operators that it cannot do without; they run wherever it does.
	needs []string
	// companions are users beside its own, for stand-ins that run along.
	companions []string
	// prepare makes what must be there before it starts, and returns its parts,
	// which are started one after the other. The ready check of the operator's own
	// part passes when it acts on a job.
	prepare func(context.Context, *setup) ([]part, error)
}

// operators are the known ones, by name; each also is the user of that name.
var operators = map[string]operator{}

// OperatorNames are the names of the known operators.
func OperatorNames() []string { return slices.Sorted(maps.Keys(operators)) }

// allOperators are the operators that were requested and those that these need.
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

// Components are what a cluster of this configuration consists of.
func (c Config) Components() []build.Component {
	components := []build.Component{controlPlaneComponent()}
	if !c.OnlyAPI {
		components = append(components, kwokComponent())
	}
	for _, name := range c.allOperators() {
		components = append(components, operators[name].component)
	}
	return components
}

// AllComponents are all there are.
func AllComponents() []build.Component {
	return Config{Operators: OperatorNames()}.Components()
}

// Kubectl is the path of the built kubectl.
func (c Config) Kubectl() string {
	return (&setup{config: c}).program(controlPlane, "kubectl")
}
