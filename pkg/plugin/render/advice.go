package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
)

// AdviceRow says when a variant of a job would start.
type AdviceRow struct {
	Job       string `json:"job"`
	Namespace string `json:"namespace"`
	Variant   string `json:"variant" jsonschema:"the job as it is, or with all its pods"`
	Pods      string `json:"pods,omitempty" jsonschema:"number of pods, or the least and the full number"`
	Requests  string `json:"requests,omitempty"`
	Starts    string `json:"starts" jsonschema:"when it is expected to start, with a range"`
	Message   string `json:"message,omitempty" jsonschema:"why it would wait"`

	colour text.Colour
}

// AdviceRows returns the variants of all jobs.
func AdviceRows(advice *objects.Advice, now time.Time) (rows []AdviceRow) {
	for i := range advice.Jobs {
		job := &advice.Jobs[i]
		s := &job.Status
		least, all := int32(0), int32(0)
		for _, set := range job.Spec.PodSets {
			all += set.Count
			if set.MinCount != nil {
				set.Count = min(set.Count, *set.MinCount)
			}
			least += set.Count
		}
		row := AdviceRow{Job: job.Name, Namespace: job.Namespace, Variant: "as it is", Pods: podsText(least, all), Requests: Amounts(job.Spec.Resource), Message: s.Message}
		row.Starts, row.colour = startText(s.Phase, s.Reason, s.Start, now)
		if s.StartPods > 0 {
			row.Starts += fmt.Sprintf(", with %s", text.Count(int(s.StartPods), "pod"))
		}
		if s.Position > 0 {
			row.Message = fmt.Sprintf("position %d of %d in queue %s; %s", s.Position, s.Waiting, s.Queue, row.Message)
		}
		for _, remedy := range s.WouldAdmit {
			if remedy.Type == visibility.LowerRequest {
				row.Message += "; " + remedy.Message
			}
		}
		rows = append(rows, row)
		if whole := s.WithAllPods; whole != nil {
			row.Variant, row.Pods, row.Message = "all pods", podsText(all, all), whole.Message
			row.Starts, row.colour = startText(string(v1alpha1.PhaseEnqueued), whole.Reason, whole.Start, now)
			rows = append(rows, row)
		}
	}
	return rows
}

func podsText(least, all int32) string {
	switch {
	case all == 0:
		return ""
	case least < all:
		return fmt.Sprintf("%d-%d", least, all)
	}
	return fmt.Sprint(all)
}

func startText(phase string, reason wellknown.Reason, start *visibility.StartEstimate, now time.Time) (string, text.Colour) {
	switch {
	case !v1alpha1.QueueUnitPhase(phase).Waits():
		return "now", text.Green
	case start != nil:
		return StartText(start, now), text.Yellow
	case reason.NeedsAction():
		return "never: " + string(reason), text.Red
	case reason == "":
		return "not known", text.Yellow
	}
	return "not known: " + string(reason), text.Yellow
}

// Advice writes when jobs would start.
func Advice(to io.Writer, advice *objects.Advice, view View) error {
	w := &strings.Builder{}
	rows := AdviceRows(advice, view.Now)
	table := &text.Table{Columns: []text.Column{{Title: "NAMESPACE", Least: leastText}, {Title: "JOB", Least: leastName}, {Title: "VARIANT"}, {Title: "PODS", Right: true, Optional: true},
		{Title: "REQUESTS", Least: leastText}, {Title: "STARTS"}}}
	for _, r := range rows {
		table.AddCells(text.Cell{Text: r.Namespace}, text.Cell{Text: r.Job}, text.Cell{Text: r.Variant}, text.Cell{Text: r.Pods}, text.Cell{Text: r.Requests}, text.Cell{Text: r.Starts, Colour: r.colour})
	}
	write(w, table, view)
	for _, r := range rows {
		if r.Message != "" {
			text.Wrap(w, "  ", fmt.Sprintf("%s/%s, %s: %s", r.Namespace, r.Job, r.Variant, r.Message), view.Style.Width)
		}
	}
	_, err := io.WriteString(to, w.String())
	return err
}
