package examples

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Outcome is what became of an example: it was not created, or has a unit.
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
		if outcome.Unit.Status.Reason == wellknown.ReasonInvalidRequest {
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
	_, told := example.Object.GetAnnotations()[wellknown.MinResourcesAnnotation]
	return example.Kind.Name == "Workflow" && !told
}

// Queued tells whether the example waits for quota.
func (o *Outcome) Queued() bool { return o.Unit != nil && o.Invalid == "" }

// Pods is how many pods the unit asks for.
func (o *Outcome) Pods() int {
	sum := 0
	for _, set := range o.Unit.Spec.PodSets {
		sum += int(set.Count)
	}
	return sum
}

// textOf what is asked for is the same for the same amounts.
func textOf(list corev1.ResourceList) string {
	var parts []string
	for name, quantity := range list {
		if !quantity.IsZero() {
			parts = append(parts, fmt.Sprintf("%s %s", name, amount(quantity)))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// amount writes a quantity in the suffixes that suit it, whichever it was made of.
func amount(quantity resource.Quantity) string {
	quantity.Format = resource.DecimalSI
	if quantity.Value()%(1<<20) == 0 {
		quantity.Format = resource.BinarySI
	}
	return quantity.String()
}

// Demand is the text of pods and what they ask for.
func Demand(pods int, list corev1.ResourceList) string {
	return plural(pods, "pod") + ", " + textOf(list)
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
