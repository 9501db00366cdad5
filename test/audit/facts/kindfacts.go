package facts

import "slices"

// byConditions returns the end of jobs that end when one of two conditions is true.
func byConditions(good, bad string) func(object) Ending {
	return func(o object) Ending {
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
func whenComplete(end func(object) Ending) func(object) Ending {
	return func(o object) Ending {
		if at[string](o, "status.completionTime") == "" {
			return Going
		}
		return end(o)
	}
}

func byState(path string, ends map[string]Ending) func(object) Ending {
	return func(o object) Ending { return ends[at[string](o, path)] }
}

func inState(path string, states ...string) func(object) bool {
	return func(o object) bool { return slices.Contains(states, at[string](o, path)) }
}

func stateAt(path string) func(object) string {
	return func(o object) string { return at[string](o, path) }
}

func hasCondition(name string) func(object) bool {
	return func(o object) bool { return slices.Contains(trueConditions(o), name) }
}

// lastCondition returns the STATE column of the training operator's kinds: the type of the last
// condition, with any status.
func lastCondition(o object) string {
	list := objects(o, "status.conditions")
	if len(list) == 0 {
		return ""
	}
	return at[string](list[len(list)-1], "type")
}

func lastTrueCondition(o object) string {
	list := trueConditions(o)
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

func activePods(o object) bool { return at[float64](o, "status.active") > 0 }

// readyJobs reports whether a Job in the list at the path has ready pods.
func readyJobs(path string) func(object) bool {
	return func(o object) bool {
		return slices.ContainsFunc(objects(o, path), func(job object) bool { return at[float64](job, "ready") > 0 })
	}
}

// withoutGroups reports whether a JobSet has no replicated jobs. It creates no pods and may have no
// spec, so there is nothing to hold.
func withoutGroups(o object) bool { return len(at[[]any](o, "spec.replicatedJobs")) == 0 }

// rayJobEnd returns the end of a RayJob. A validation failure is an end, except for a held job that
// never ran: its owner can still fix it. The RayCluster of the job is checked in package state.
func rayJobEnd(o object) Ending {
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
func rayJobUnholdable(o object) bool {
	keeps := at[string](o, "spec.deletionStrategy.onSuccess.policy") == "DeleteNone" || at[string](o, "spec.deletionStrategy.onFailure.policy") == "DeleteNone"
	return len(at[object](o, "spec.clusterSelector")) > 0 || len(at[[]any](o, "spec.deletionStrategy.deletionRules")) > 0 || keeps
}

// queuePoint reports whether a Workflow has the template by which it opts in.
func queuePoint(o object) bool {
	return slices.ContainsFunc(objects(o, "spec.templates"), func(t object) bool {
		return at[string](t, "name") == "kube-queue-suspend" && at[object](t, "suspend") != nil
	})
}
