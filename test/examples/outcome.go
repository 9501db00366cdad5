package examples

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Outcome is the result of submitting an example: it was not created, or it has a unit.
type Outcome struct {
	Submitted
	Unit *v1alpha1.QueueUnit
	// Invalid is the message of a unit with reason InvalidRequest.
	Invalid string
	// Warning is the event about an unknown size.
	Warning string
}

// OutcomeOf returns the outcome of an example, and whether it is already known: if a message is expected, a unit is
// not enough.
func OutcomeOf(submitted Submitted, units map[types.UID]*v1alpha1.QueueUnit, warnings map[types.UID]string) (Outcome, bool) {
	outcome := Outcome{Submitted: submitted}
	if submitted.Refused != "" {
		return outcome, true
	}
	outcome.Unit, outcome.Warning = units[submitted.UID], warnings[submitted.UID]
	switch {
	case outcome.Unit == nil:
		return outcome, false
	case !*outcome.Unit.Spec.Active:
		if outcome.Unit.Status.Reason == wellknown.ReasonInvalidRequest {
			outcome.Invalid = oneLine(outcome.Unit.Status.Message)
		}
		return outcome, outcome.Invalid != ""
	case unsized(submitted.Example):
		return outcome, outcome.Warning != ""
	}
	return outcome, true
}

// unsized reports whether the example is a Workflow whose owner does not specify its size.
func unsized(example *Example) bool {
	_, sized := example.Object.GetAnnotations()[wellknown.MinResourcesAnnotation]
	return example.Kind.Kind == "Workflow" && !sized
}

// Queued reports whether the example waits for quota.
func (o *Outcome) Queued() bool { return o.Unit != nil && o.Invalid == "" }

// Pods returns the number of pods that the unit requests.
func (o *Outcome) Pods() int {
	sum := 0
	for _, set := range o.Unit.Spec.PodSets {
		sum += int(set.Count)
	}
	return sum
}

// textOf formats a request. Equal amounts have equal texts.
func textOf(list corev1.ResourceList) string {
	var parts []string
	for name, quantity := range list {
		if !quantity.IsZero() {
			parts = append(parts, fmt.Sprintf("%s %s", name, resources.FormatQuantity(string(name), quantity)))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// Demand formats a number of pods and their requests.
func Demand(pods int, list corev1.ResourceList) string {
	return text.Count(pods, "pod") + ", " + textOf(list)
}
