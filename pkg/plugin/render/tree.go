package render

import (
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
	"kube-queue.dev/kube-queue/pkg/resources"
)

const (
	barWidth = 20
	// unqueuedMeaning explains the column UNQUEUED.
	unqueuedMeaning = "what pods outside the queue use"
)

// Tree writes quotas, parents first, with a row for each resource of each quota.
func Tree(to io.Writer, quotas []visibility.QuotaSummary, view View) error {
	table := &text.Table{Columns: []text.Column{{Title: "NAME", Least: leastName}, {Title: "RESOURCE", Least: leastText}, {Title: "MIN", Right: true}, {Title: "USED", Right: true},
		{Title: "MAX", Right: true}, {Title: "BORROWED", Right: true, Meaning: "what the quota uses above its min"},
		{Title: "LENT", Right: true, Meaning: "the unused part of the min that other quotas use"}, {Title: "UNQUEUED", Right: true, Meaning: unqueuedMeaning}, {Title: "WAITING", Right: true, Meaning: "what waiting jobs request"}}}
	if view.Style.Bars {
		table.Columns = append(table.Columns, text.Column{Title: "USE"})
	}
	if view.Wide {
		table.Columns = append(table.Columns, text.Column{Title: "QUEUE", Least: leastText})
	}
	var above []string
	for i := range quotas {
		q := &quotas[i]
		for len(above) > 0 && !strings.HasPrefix(q.Path, above[len(above)-1]+"/") {
			above = above[:len(above)-1]
		}
		name := q.Path
		if len(above) > 0 && !view.Wide {
			name = strings.Repeat("  ", len(above)) + strings.TrimPrefix(q.Path, above[len(above)-1]+"/")
		}
		above = append(above, q.Path)
		for j, resource := range Resources(q, view.Wide) {
			row := quotaRow(q, resource, view)
			if j == 0 {
				row[0].Text = name
			}
			table.AddCells(row...)
		}
	}
	return table.Write(to, view.Style, view.Header)
}

// Resources returns the resources to show for a quota: those that have a min or max, or are used or requested. The
// number of jobs comes last. It is shown if it has a max, if jobs is true, or if there is nothing else to show.
func Resources(q *visibility.QuotaSummary, jobs bool) []corev1.ResourceName {
	shown := map[corev1.ResourceName]bool{}
	for _, list := range []corev1.ResourceList{q.Min, q.Max} {
		for name := range list {
			shown[name] = true
		}
	}
	for _, list := range []corev1.ResourceList{q.Used, q.Borrowed, q.Lent, q.Unqueued, q.Requested} {
		for name, amount := range list {
			if !amount.IsZero() {
				shown[name] = true
			}
		}
	}
	_, limited := q.Max[wellknown.MaxJobsResource]
	delete(shown, wellknown.MaxJobsResource)
	names := slices.Sorted(maps.Keys(shown))
	if jobs || limited || len(names) == 0 {
		names = append(names, wellknown.MaxJobsResource)
	}
	return names
}

// UseOf returns lists that contain the usage and the waiting requests of a resource. For jobs, these are the number of
// jobs that hold quota and the number that wait.
func UseOf(q *visibility.QuotaSummary, name corev1.ResourceName) (used, requested corev1.ResourceList) {
	requested = q.Requested
	used = q.Used
	if name == wellknown.MaxJobsResource {
		requested = corev1.ResourceList{}
		if q.Waiting > 0 {
			requested[name] = *resource.NewQuantity(int64(q.Waiting), resource.DecimalSI)
		}
		if _, known := used[name]; !known {
			used = corev1.ResourceList{name: *resource.NewQuantity(int64(q.Holding), resource.DecimalSI)}
		}
	}
	return used, requested
}

func quotaRow(q *visibility.QuotaSummary, name corev1.ResourceName, view View) []text.Cell {
	used, requested := UseOf(q, name)
	use := text.Cell{Text: Amount(used, name, "0")}
	if limit, limited := q.Max[name]; limited {
		if have := used[name]; have.Cmp(limit) > 0 {
			use.Colour = text.Red
		}
	}
	cells := []text.Cell{{}, {Text: ResourceName(string(name))}, {Text: Amount(q.Min, name, text.None)}, use, {Text: Amount(q.Max, name, text.None)},
		{Text: Amount(q.Borrowed, name, text.None), Colour: text.Yellow}, {Text: Amount(q.Lent, name, text.None)}, {Text: Amount(q.Unqueued, name, text.None)}, {Text: Amount(requested, name, text.None)}}
	if view.Style.Bars {
		bar := text.Bar{Used: Float(used, name), Borrowed: Float(q.Borrowed, name), Max: Float(q.Max, name)}
		cells = append(cells, text.Cell{Text: bar.Draw(barWidth), Colour: barColour(bar)})
	}
	if view.Wide {
		cells = append(cells, text.Cell{Text: q.Queue})
	}
	return cells
}

// barColour returns the colour of the whole bar. The characters in it distinguish its parts.
func barColour(bar text.Bar) text.Colour {
	switch {
	case bar.Used > bar.Max:
		return text.Red
	case bar.Borrowed > 0:
		return text.Yellow
	default:
		return text.Green
	}
}

// Amount returns an amount as text, or missing if the list does not have it.
func Amount(list corev1.ResourceList, name corev1.ResourceName, missing string) string {
	q, has := list[name]
	if !has {
		return missing
	}
	return resources.FormatQuantity(string(name), q)
}

// Float returns an amount as a number; 0 if the list does not have it.
func Float(list corev1.ResourceList, name corev1.ResourceName) float64 {
	q := list[name]
	return q.AsApproximateFloat64()
}

// Hidden writes how many quotas are not shown.
func Hidden(to io.Writer, hidden int32) {
	if hidden > 0 {
		note(to, "%s of others not shown.", text.Count(int(hidden), "quota"))
	}
}

// NotInForce says why the quotas are not those of the current tree; nothing if they are.
func NotInForce(to io.Writer, message string) {
	if message != "" {
		note(to, "%s", text.Clean(message))
	}
}
