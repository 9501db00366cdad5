package audit

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fields are the fields of a job. Users may write anything into them.
type fields = map[string]any

// at returns the value at a dotted path, or zero if there is none of this type.
func at[T any](o fields, path string) (value T) {
	found, _, _ := unstructured.NestedFieldNoCopy(o, strings.Split(path, ".")...)
	value, _ = found.(T)
	return value
}

// listAt returns the objects in the list at a path.
func listAt(o fields, path string) (list []fields) {
	for _, item := range at[[]any](o, path) {
		if one, ok := item.(fields); ok {
			list = append(list, one)
		}
	}
	return list
}

// trueConditions returns the types of the conditions of a job that are true.
func trueConditions(o fields) (types []string) {
	for _, c := range listAt(o, "status.conditions") {
		if at[string](c, "status") == "True" {
			types = append(types, at[string](c, "type"))
		}
	}
	return types
}

// byConditions returns the end of jobs that end when one of two conditions is true.
func byConditions(good, bad string) func(fields) Ending {
	return func(o fields) Ending {
		for _, name := range trueConditions(o) {
			switch name {
			case good:
				return Succeeded
			case bad:
				return Failed
			}
		}
		return Going
	}
}

// whenComplete ignores an end without completionTime.
func whenComplete(end func(fields) Ending) func(fields) Ending {
	return func(o fields) Ending {
		if at[string](o, "status.completionTime") == "" {
			return Going
		}
		return end(o)
	}
}

func byState(path string, ends map[string]Ending) func(fields) Ending {
	return func(o fields) Ending { return ends[at[string](o, path)] }
}

func inState(path string, states ...string) func(fields) bool {
	return func(o fields) bool { return slices.Contains(states, at[string](o, path)) }
}

func stateAt(path string) func(fields) string {
	return func(o fields) string { return at[string](o, path) }
}

func hasCondition(name string) func(fields) bool {
	return func(o fields) bool { return slices.Contains(trueConditions(o), name) }
}

// lastCondition returns the STATE column of the training operator's kinds: the type of the last
// condition, with any status.
func lastCondition(o fields) string {
	list := listAt(o, "status.conditions")
	if len(list) == 0 {
		return ""
	}
	return at[string](list[len(list)-1], "type")
}

func lastTrueCondition(o fields) string {
	list := trueConditions(o)
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

func activePods(o fields) bool { return at[float64](o, "status.active") > 0 }

// readyJobs reports whether a Job in the list at the path has ready pods.
func readyJobs(path string) func(fields) bool {
	return func(o fields) bool {
		return slices.ContainsFunc(listAt(o, path), func(job fields) bool { return at[float64](job, "ready") > 0 })
	}
}

// withoutGroups reports whether a JobSet has no replicated jobs. It creates no pods and may have no
// spec, so there is nothing to hold.
func withoutGroups(o fields) bool { return len(at[[]any](o, "spec.replicatedJobs")) == 0 }

// rayJobEnd returns the end of a RayJob. A validation failure is an end, except for a held job that
// never ran: its owner can still fix it. The RayCluster of the job is part of the world.
func rayJobEnd(o fields) Ending {
	switch at[string](o, "status.jobDeploymentStatus") {
	case "Complete":
		if at[string](o, "status.jobStatus") == "SUCCEEDED" {
			return Succeeded
		}
		return Failed
	case "Failed":
		return Failed
	case "ValidationFailed":
		if !at[bool](o, "spec.suspend") || at[string](o, "status.rayClusterName") != "" {
			return Failed
		}
	}
	return Going
}

// rayJobUnholdable reports whether KubeRay refuses to suspend the RayJob, so that it cannot be
// held.
func rayJobUnholdable(o fields) bool {
	keeps := at[string](o, "spec.deletionStrategy.onSuccess.policy") == "DeleteNone" || at[string](o, "spec.deletionStrategy.onFailure.policy") == "DeleteNone"
	return len(at[fields](o, "spec.clusterSelector")) > 0 || len(at[[]any](o, "spec.deletionStrategy.deletionRules")) > 0 || keeps
}

// queuePoint reports whether a Workflow has the template by which it opts in.
func queuePoint(o fields) bool {
	return slices.ContainsFunc(listAt(o, "spec.templates"), func(t fields) bool {
		return at[string](t, "name") == "kube-queue-suspend" && at[fields](t, "suspend") != nil
	})
}
