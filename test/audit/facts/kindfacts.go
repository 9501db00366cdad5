package facts

import (
	"encoding/json"
	"slices"
	"strings"
)

// byConditions returns the end of jobs that end when one of two conditions is true.
func byConditions(good, bad string) func(*object) Ending {
	return func(o *object) Ending {
		for _, c := range o.conditions() {
			switch {
			case c.Status != "True":
			case c.Type == good:
				return Succeeded
			case c.Type == bad:
				return Failed
			}
		}
		return Going
	}
}

// whenComplete ignores an end without completionTime.
func whenComplete(end func(*object) Ending) func(*object) Ending {
	return func(o *object) Ending {
		if !o.has("status.completionTime") {
			return Going
		}
		return end(o)
	}
}

func byState(path string, ends map[string]Ending) func(*object) Ending {
	return func(o *object) Ending { return ends[o.text(path)] }
}

func inState(path string, states ...string) func(*object) bool {
	return func(o *object) bool { return slices.Contains(states, o.text(path)) }
}

func stateAt(path string) func(*object) string {
	return func(o *object) string { return o.text(path) }
}

func hasCondition(name string) func(*object) bool {
	return func(o *object) bool { return o.condition(name) }
}

// lastCondition returns the STATE column of the training operator's kinds: the type of the last
// condition, with any status.
func lastCondition(o *object) string {
	list := o.conditions()
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1].Type
}

func lastTrueCondition(o *object) string {
	state := ""
	for _, c := range o.conditions() {
		if c.Status == "True" {
			state = c.Type
		}
	}
	return state
}

func activePods(o *object) bool {
	var n int
	return o.into("status.active", &n) && n > 0
}

// readyJobs reports whether a Job in the list at the path has ready pods.
func readyJobs(path string) func(*object) bool {
	return func(o *object) bool {
		var jobs []struct {
			Ready int `json:"ready"`
		}
		o.into(path, &jobs)
		for _, job := range jobs {
			if job.Ready > 0 {
				return true
			}
		}
		return false
	}
}

// withoutGroups reports whether a JobSet has no replicated jobs. It creates no pods and may have no
// spec, so there is nothing to hold.
func withoutGroups(o *object) bool {
	var groups []any
	o.into("spec.replicatedJobs", &groups)
	return len(groups) == 0
}

// jobPods returns min(parallelism, completions) of a batch Job.
func jobPods(o *object) int {
	n := 1
	o.into("spec.parallelism", &n)
	completions := n
	o.into("spec.completions", &completions)
	return min(n, completions)
}

func replicaPods(path string, unset int, except map[string]int) func(*object) int {
	return func(o *object) int {
		sum := 0
		for role, raw := range o.open(path) {
			n := unset
			if own, ok := except[strings.ToLower(role)]; ok {
				n = own
			}
			var spec struct {
				Replicas *int `json:"replicas"`
			}
			if json.Unmarshal(raw, &spec) == nil && spec.Replicas != nil {
				n = *spec.Replicas
			}
			sum += n
		}
		return sum
	}
}

// rayJobEnd returns the end of a RayJob. A validation failure is an end, except for a held job that
// never ran: its owner can still fix it. The RayCluster of the job is checked in package state.
func rayJobEnd(o *object) Ending {
	switch o.text("status.jobDeploymentStatus") {
	case "Complete":
		if o.text("status.jobStatus") == "SUCCEEDED" {
			return Succeeded
		}
		return Failed
	case "Failed":
		return Failed
	case "ValidationFailed":
		var suspended bool
		if o.into("spec.suspend", &suspended); !suspended || o.text("status.rayClusterName") != "" {
			return Failed
		}
	}
	return Going
}

// rayJobUnholdable reports whether KubeRay refuses to suspend the RayJob, so that it cannot be
// held.
func rayJobUnholdable(o *object) bool {
	var rules []any
	o.into("spec.deletionStrategy.deletionRules", &rules)
	keeps := o.text("spec.deletionStrategy.onSuccess.policy") == "DeleteNone" || o.text("spec.deletionStrategy.onFailure.policy") == "DeleteNone"
	return len(o.open("spec.clusterSelector")) > 0 || len(rules) > 0 || keeps
}

// queuePoint reports whether a Workflow has the template by which it opts in.
func queuePoint(o *object) bool {
	var templates []struct {
		Name    string    `json:"name"`
		Suspend *struct{} `json:"suspend"`
	}
	o.into("spec.templates", &templates)
	for _, t := range templates {
		if t.Name == "kube-queue-suspend" && t.Suspend != nil {
			return true
		}
	}
	return false
}
