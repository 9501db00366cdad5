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
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// View says how to show an answer.
type View struct {
	Style text.Style
	// Wide shows additional columns, Header the titles, and Namespaces the namespace of each row.
	Wide, Header, Namespaces bool
	// Starts, if set, returns when a unit of Rows is expected to start; nil if that is not known.
	Starts func(namespace, unit string) *visibility.StartEstimate
	// Widths, if set, are the column widths of earlier rows.
	Widths *[]int
	// Now is the time that ages refer to.
	Now time.Time
}

// leastName and leastText are the minimum widths of columns on a narrow terminal.
const (
	leastName = 16
	leastText = 12
)

// row is a unit, or several similar units, in a table.
type row struct {
	visibility.UnitSummary
	job, requests, quota, message string
	// count is the number of units; 0 if each has its own row.
	count int
}

// Rows writes units. If grouped, similar units share a row.
func Rows(to io.Writer, groups []units.Group, grouped bool, view View) error {
	list := make([]row, len(groups))
	for i, group := range groups {
		u := group.First
		list[i] = row{UnitSummary: objects.Summary(u), job: u.Job(), requests: units.RequestText(u.Requests()), quota: u.Status.Quota, message: u.Status.Text}
		if view.Starts != nil {
			list[i].Start = view.Starts(u.Metadata.Namespace, u.Metadata.Name)
		}
		if grouped {
			list[i].count = group.Count
		}
	}
	return rows(to, list, view)
}

// Summaries writes units of a review.
func Summaries(to io.Writer, list []visibility.UnitSummary, view View) error {
	all := make([]row, len(list))
	for i, u := range list {
		all[i] = rowOf(u)
	}
	return rows(to, all, view)
}

func rowOf(u visibility.UnitSummary) row {
	return row{UnitSummary: u, job: units.JobOf(u.Kind, u.Name), requests: Amounts(u.Requests)}
}

func rows(to io.Writer, list []row, view View) error {
	table := &text.Table{Widths: view.Widths}
	if view.Namespaces {
		table.Columns = append(table.Columns, text.Column{Title: "NAMESPACE", Least: leastText})
	}
	table.Columns = append(table.Columns, text.Column{Title: "JOB", Least: leastName}, text.Column{Title: "UNITS", Right: true, Optional: true}, text.Column{Title: "POSITION", Right: true, Optional: true},
		text.Column{Title: "QUEUE", Least: leastText}, text.Column{Title: "PHASE"}, text.Column{Title: "REASON"}, text.Column{Title: "PRIORITY"}, text.Column{Title: "REQUESTS", Least: leastText},
		text.Column{Title: "WAITED"}, text.Column{Title: "AGE"},
		text.Column{Title: "STARTS-IN", Optional: true, Meaning: "about how much longer the job waits, if jobs run as long as earlier ones"})
	if view.Wide {
		once := view.Widths == nil // later rows may have what the first ones lack
		table.Columns = append(table.Columns, text.Column{Title: "UNIT", Least: leastName}, text.Column{Title: "QUOTA", Least: leastText, Optional: once}, text.Column{Title: "MESSAGE", Least: leastText, Optional: once})
	}
	for i := range list {
		r := &list[i]
		var cells []text.Cell
		if view.Namespaces {
			cells = append(cells, text.Cell{Text: r.Namespace})
		}
		cells = append(cells, text.Cell{Text: r.job}, positive(r.count), positive(int(r.Position)), text.Cell{Text: r.Queue}, phaseCell(r.Phase, r.Reason), reasonCell(r.Reason),
			number(r.Priority), text.Cell{Text: r.requests}, text.Cell{Text: waited(&r.UnitSummary, view.Now)}, text.Cell{Text: age(&r.UnitSummary, view.Now)}, startsIn(&r.UnitSummary, view.Now))
		if view.Wide {
			cells = append(cells, text.Cell{Text: r.Name}, text.Cell{Text: r.quota}, text.Cell{Text: r.message})
		}
		table.AddCells(cells...)
	}
	return table.Write(to, view.Style, view.Header)
}

// positive returns a cell with n, or an empty one for 0.
func positive(n int) text.Cell {
	if n == 0 {
		return text.Cell{}
	}
	return text.Cell{Text: strconv.Itoa(n)}
}

// startsIn returns how much longer a unit is expected to wait.
func startsIn(u *visibility.UnitSummary, now time.Time) text.Cell {
	if u.Start == nil {
		return text.Cell{}
	}
	return text.Cell{Text: text.Rough(u.Start.Time.Sub(now))}
}

// age returns the time since the job was submitted.
func age(u *visibility.UnitSummary, now time.Time) string {
	if u.SubmissionTime == nil {
		return ""
	}
	return text.Age(u.SubmissionTime.Time, now)
}

// waited returns the time from submission to the last admission, or to now.
func waited(u *visibility.UnitSummary, now time.Time) string {
	switch {
	case v1alpha1.QueueUnitPhase(u.Phase).Waits():
		return age(u, now)
	case u.DequeueTime == nil:
		return ""
	}
	return age(u, u.DequeueTime.Time)
}

// Groups writes the groups of a review.
func Groups(to io.Writer, groups []visibility.UnitGroup, view View) error {
	list := make([]row, len(groups))
	for i, g := range groups {
		list[i] = rowOf(g.First)
		list[i].count = int(g.Units)
		list[i].Position = 0 // the position of the first unit would look like that of the group
	}
	return rows(to, list, view)
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

func note(to io.Writer, format string, args ...any) { fmt.Fprintf(to, format+"\n", args...) }
