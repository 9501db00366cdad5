package examples

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/workflow"
)

// Outcome is what became of an example: it was refused, or has a unit.
type Outcome struct {
	Submitted
	Unit *v1alpha1.QueueUnit
	// Invalid is why the unit can never be admitted as it is.
	Invalid string
	// Warning is what the job's owner is told of a unit of no size.
	Warning string
}

// Judge tells what became of an example, if that is known yet: a unit alone is not
// enough where a message belongs to it.
func Judge(submitted Submitted, units map[types.UID]*v1alpha1.QueueUnit, warnings map[types.UID]string) (Outcome, bool) {
	outcome := Outcome{Submitted: submitted}
	if submitted.Refused != "" {
		return outcome, true
	}
	outcome.Unit, outcome.Warning = units[submitted.UID], warnings[submitted.UID]
	switch {
	case outcome.Unit == nil:
		return outcome, false
	case !*outcome.Unit.Spec.Active:
		if outcome.Unit.Status.Reason == framework.ReasonInvalidRequest {
			outcome.Invalid = oneLine(outcome.Unit.Status.Message)
		}
		return outcome, outcome.Invalid != ""
	case unsized(submitted.Example):
		return outcome, outcome.Warning != ""
	}
	return outcome, true
}

// unsized: only its owner can tell how large a Workflow is.
func unsized(example *Example) bool {
	_, told := example.Object.GetAnnotations()[workflow.MinResourcesAnnotation]
	return example.Kind.Name == "Workflow" && !told
}

// Queued tells whether the example waits for quota.
func (o *Outcome) Queued() bool { return o.Unit != nil && o.Invalid == "" }

// Pods is how many pods the unit asks for.
func (o *Outcome) Pods() int { return CountOf(o.Unit) }

// CountOf all pods of a unit.
func CountOf(unit *v1alpha1.QueueUnit) int {
	sum := 0
	for _, set := range unit.Spec.PodSets {
		sum += int(set.Count)
	}
	return sum
}

// Text of what is asked for.
func Text(list corev1.ResourceList) string {
	var parts []string
	for name, quantity := range list {
		parts = append(parts, fmt.Sprintf("%s %s", name, quantity.String()))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// Demand is the text of pods and what they ask for.
func Demand(pods int, list corev1.ResourceList) string {
	noun := "pods"
	if pods == 1 {
		noun = "pod"
	}
	return fmt.Sprintf("%d %s, %s", pods, noun, Text(list))
}
