// Package render writes the answers of the kubectl plugin for people. It uses no cluster and no clock.
package render

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// View is how an answer is shown.
type View struct {
	Style text.Style
	// Wide shows additional columns. Header is whether tables have titles, and Namespaces whether each row shows its
	// namespace.
	Wide, Header, Namespaces bool
	// Widths, if set, are the column widths of the rows that were written before.
	Widths *[]int
	// Now is the time that ages refer to.
	Now time.Time
}

// leastName and leastText are the minimum widths of columns on a narrow terminal.
const (
	leastName = 16
	leastText = 12
)

// Rows writes units. grouped is whether similar units are one row.
func Rows(to io.Writer, groups []units.Group, grouped bool, view View) error {
	table := &text.Table{Widths: view.Widths}
	if view.Namespaces {
		table.Columns = append(table.Columns, text.Column{Title: "NAMESPACE", Least: leastText})
	}
	table.Columns = append(table.Columns, text.Column{Title: "NAME", Least: leastName})
	if grouped {
		table.Columns = append(table.Columns, text.Column{Title: "UNITS", Right: true})
	}
	table.Columns = append(table.Columns, text.Column{Title: "QUEUE", Least: leastText}, text.Column{Title: "PHASE"}, text.Column{Title: "REASON"},
		text.Column{Title: "PRIORITY"}, text.Column{Title: "KIND"}, text.Column{Title: "REQUESTS", Least: leastText}, text.Column{Title: "AGE"})
	if view.Wide {
		table.Columns = append(table.Columns, text.Column{Title: "QUOTA", Least: leastText}, text.Column{Title: "MESSAGE", Least: leastText})
	}
	for _, group := range groups {
		u := group.First
		var cells []text.Cell
		if view.Namespaces {
			cells = append(cells, text.Cell{Text: u.Metadata.Namespace})
		}
		cells = append(cells, text.Cell{Text: u.Metadata.Name})
		if grouped {
			cells = append(cells, text.Cell{Text: strconv.Itoa(group.Count)})
		}
		cells = append(cells, text.Cell{Text: u.Status.Queue}, phaseCell(string(u.Phase()), wellknown.Reason(u.Status.Reason)), reasonCell(wellknown.Reason(u.Status.Reason)),
			text.Cell{Text: strconv.Itoa(int(u.Spec.Priority))}, text.Cell{Text: u.Spec.ConsumerRef.Kind}, text.Cell{Text: units.RequestText(u.Spec.Resource)},
			text.Cell{Text: text.Age(u.Metadata.CreationTimestamp, view.Now)})
		if view.Wide {
			cells = append(cells, text.Cell{Text: u.Status.Quota}, text.Cell{Text: u.Status.Text})
		}
		table.AddCells(cells...)
	}
	return table.Write(to, view.Style, view.Header)
}

// Summaries writes units of a review. counts, if not nil, has the number of units in each row.
func Summaries(to io.Writer, list []visibility.UnitSummary, counts []int32, view View) error {
	table := &text.Table{}
	if view.Namespaces {
		table.Columns = append(table.Columns, text.Column{Title: "NAMESPACE", Least: leastText})
	}
	table.Columns = append(table.Columns, text.Column{Title: "NAME", Least: leastName})
	if counts != nil {
		table.Columns = append(table.Columns, text.Column{Title: "UNITS", Right: true})
	}
	positions := slices.ContainsFunc(list, func(u visibility.UnitSummary) bool { return u.Position > 0 })
	if positions {
		table.Columns = append(table.Columns, text.Column{Title: "POSITION", Right: true})
	}
	table.Columns = append(table.Columns, text.Column{Title: "QUEUE", Least: leastText}, text.Column{Title: "PHASE"}, text.Column{Title: "REASON"},
		text.Column{Title: "PRIORITY"}, text.Column{Title: "KIND"}, text.Column{Title: "REQUESTS", Least: leastText}, text.Column{Title: "AGE"})
	for i, u := range list {
		var cells []text.Cell
		if view.Namespaces {
			cells = append(cells, text.Cell{Text: u.Namespace})
		}
		cells = append(cells, text.Cell{Text: u.Name})
		if counts != nil {
			cells = append(cells, text.Cell{Text: strconv.Itoa(int(counts[i]))})
		}
		if positions {
			position := ""
			if u.Position > 0 {
				position = strconv.Itoa(int(u.Position))
			}
			cells = append(cells, text.Cell{Text: position})
		}
		age := ""
		if u.SubmissionTime != nil {
			age = text.Age(u.SubmissionTime.Time, view.Now)
		}
		cells = append(cells, text.Cell{Text: u.Queue}, phaseCell(u.Phase, u.Reason), reasonCell(u.Reason), text.Cell{Text: strconv.Itoa(int(u.Priority))},
			text.Cell{Text: u.Kind}, text.Cell{Text: Amounts(u.Requests)}, text.Cell{Text: age})
		table.AddCells(cells...)
	}
	return table.Write(to, view.Style, view.Header)
}

// Groups writes the groups of a review.
func Groups(to io.Writer, groups []visibility.UnitGroup, view View) error {
	list, counts := make([]visibility.UnitSummary, len(groups)), make([]int32, len(groups))
	for i, g := range groups {
		list[i], counts[i] = g.First, g.Units
		list[i].Position = 0 // the position of the first unit would look like that of the group
	}
	return Summaries(to, list, counts, view)
}

func phaseCell(phase string, reason wellknown.Reason) text.Cell {
	cell := text.Cell{Text: phase}
	switch v1alpha1.QueueUnitPhase(phase) {
	case v1alpha1.PhaseRunning, v1alpha1.PhaseSucceeded:
		cell.Colour = text.Green
	case v1alpha1.PhaseFailed:
		cell.Colour = text.Red
	case v1alpha1.PhaseEnqueued, v1alpha1.PhaseBackoff:
		cell.Colour = text.Yellow
		if reason.NeedsAction() {
			cell.Colour = text.Red
		}
	}
	return cell
}

func reasonCell(reason wellknown.Reason) text.Cell {
	cell := text.Cell{Text: string(reason)}
	if reason.NeedsAction() {
		cell.Colour = text.Red
	}
	return cell
}

// Amounts returns amounts as text: "4 cpu, 8Gi memory". Amounts of 0 are left out.
func Amounts(list corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if q := list[name]; !q.IsZero() {
			parts = append(parts, resources.FormatQuantity(string(name), q)+" "+ResourceName(string(name)))
		}
	}
	return strings.Join(parts, ", ")
}

// ResourceName returns the name of a resource for people.
func ResourceName(name string) string {
	if name == wellknown.MaxJobsResource {
		return "jobs"
	}
	return name
}

// Queues writes queues.
func Queues(to io.Writer, list []visibility.QueueSummary, view View) error {
	table := &text.Table{Columns: []text.Column{{Title: "NAME", Least: leastName}, {Title: "POLICY"}, {Title: "STOP"}, {Title: "PENDING", Right: true},
		{Title: "RESERVED", Right: true}, {Title: "DEQUEUED", Right: true}, {Title: "RUNNING", Right: true}, {Title: "FRONT-REASON"}, {Title: "QUOTA", Least: leastText}}}
	if view.Wide {
		table.Columns = append(table.Columns, text.Column{Title: "HIGHEST-PRIORITY", Right: true}, text.Column{Title: "REQUESTED", Least: leastText}, text.Column{Title: "HELD", Least: leastText})
	}
	for _, q := range list {
		stop := text.Cell{Text: cmp.Or(q.Stop, string(v1alpha1.StopNone))}
		if stop.Text != string(v1alpha1.StopNone) {
			stop.Colour = text.Yellow
		}
		cells := []text.Cell{{Text: q.Name}, {Text: q.Policy}, stop, number(q.Pending), number(q.Reserved), number(q.Dequeued), number(q.Running), reasonCell(q.HeadReason), {Text: q.Quota}}
		if view.Wide {
			highest := ""
			if q.HighestPriority != nil {
				highest = strconv.Itoa(int(*q.HighestPriority))
			}
			cells = append(cells, text.Cell{Text: highest}, text.Cell{Text: Amounts(q.Requested)}, text.Cell{Text: Amounts(q.Held)})
		}
		table.AddCells(cells...)
	}
	return table.Write(to, view.Style, view.Header)
}

func number(n int32) text.Cell { return text.Cell{Text: strconv.Itoa(int(n))} }

func timeText(at *metav1.Time) string { return at.UTC().Format(time.RFC3339) }

// note writes a line about what is not shown.
func note(to io.Writer, format string, args ...any) { fmt.Fprintf(to, format+"\n", args...) }
