package examples

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// Report contains the outcomes of the examples of a source.
type Report struct {
	*Collection
	Outcomes []Outcome
}

// List returns a line for each example: its file, kind, number of pods and request, the result, and whether make
// test-examples finds the same pods. For a source with Summary, each line counts the examples that are alike.
func List(reports []*Report) []byte {
	var list bytes.Buffer
	for _, report := range reports {
		fmt.Fprintf(&list, "%s %s\n", report.Operator, report.Module.Version)
		alike := map[string]int{}
		for i := range report.Outcomes {
			o := &report.Outcomes[i]
			line := report.line(o)
			if alike[line]++; !report.Summary {
				fmt.Fprintf(&list, "%s | %s\n", o.File, line)
			}
		}
		for _, line := range slices.Sorted(maps.Keys(alike)) {
			if report.Summary {
				fmt.Fprintf(&list, "%d | %s\n", alike[line], line)
			}
		}
	}
	return list.Bytes()
}

func (r *Report) line(o *Outcome) string {
	var pods, demand, result, real string
	switch {
	case o.Refused != "":
		result = "not created: " + o.Refused
	case o.Invalid != "":
		result = fmt.Sprintf("not queued: %s: %s", wellknown.ReasonInvalidRequest, o.Invalid)
	case o.Warning != "":
		pods, demand, result = "–", textOf(o.Unit.Spec.Resource), "queued, with a warning: "+o.Warning
	default:
		pods, demand, result, real = fmt.Sprint(o.Pods()), textOf(o.Unit.Spec.Resource), "queued", "the same"
	}
	if difference, differs := DifferenceOf(r.Operator, o.File); differs {
		real = difference.Real + ": " + difference.Why
	}
	return strings.TrimRight(strings.Join([]string{o.Kind.Kind, pods, demand, result, real}, " | "), " |")
}
