package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
)

// Subject is the unit that an answer is about.
type Subject struct {
	Namespace, Unit string
	// Kind and Job are the kind and the name of its job.
	Kind, Job string
	PodSets   []v1alpha1.PodSet
}

// Why writes why a unit waits.
func Why(to io.Writer, about Subject, status *visibility.QueueUnitReviewStatus, view View) error {
	w := &strings.Builder{}
	headline(w, about, status, view)
	facts(w, about, status, view.Now)
	if len(about.PodSets) > 1 || len(about.PodSets) == 1 && about.PodSets[0].Count > 1 {
		section(w, "Its pods, with their init containers, sidecars and overhead:")
		podSets(w, about.PodSets, view)
	}
	if len(status.Lacks) > 0 {
		section(w, "It lacks:")
		lacks(w, status.Lacks, view)
	}
	if len(status.Ahead) > 0 || status.AheadHidden > 0 {
		section(w, "Ahead of it:")
		if err := summaries(w, status.Ahead, view); err != nil {
			return err
		}
		if more := MoreAhead(status); more > 0 {
			note(w, "  and %d more", more)
		}
		if status.AheadHidden > 0 {
			note(w, "  %s in namespaces that you cannot view", text.Count(int(status.AheadHidden), "unit"))
		}
	}
	if len(status.Holders) > 0 {
		section(w, "What it lacks is held by:")
		holders(w, status.Holders, view)
	}
	if len(status.HoldingUnits) > 0 {
		section(w, "Units that hold most of it:")
		if err := summaries(w, status.HoldingUnits, view); err != nil {
			return err
		}
	}
	if len(status.WouldAdmit) > 0 {
		section(w, "What would admit it:")
		remedies(w, about, status.WouldAdmit, view)
	}
	_, err := io.WriteString(to, w.String())
	return err
}

// MoreAhead returns how many units ahead of a unit the caller can list and the answer does not.
func MoreAhead(status *visibility.QueueUnitReviewStatus) int {
	return max(int(status.Position)-1-len(status.Ahead)-int(status.AheadHidden), 0)
}

func section(w *strings.Builder, title string) { fmt.Fprintf(w, "\n%s\n", title) }

// headline writes the verdict and the message.
func headline(w *strings.Builder, about Subject, status *visibility.QueueUnitReviewStatus, view View) {
	name := about.Unit
	if about.Job != "" {
		name = about.Kind + " " + about.Job
	}
	verdict, colour := verdictOf(status)
	fmt.Fprintf(w, "%s %s\n", text.Clean(name), view.Style.Paint(colour, text.Clean(verdict)))
	if status.Message != "" {
		text.Wrap(w, "  ", status.Message, view.Style.Width)
	}
}

// Verdict returns the state of the job and the reason, such as "waits: NotAtFront".
func Verdict(status *visibility.QueueUnitReviewStatus) string {
	verdict, _ := verdictOf(status)
	return verdict
}

func verdictOf(status *visibility.QueueUnitReviewStatus) (verdict string, colour text.Colour) {
	phase := v1alpha1.QueueUnitPhase(status.Phase)
	switch {
	case phase.Waits() && status.Reason == "" && status.Message != "": // the reason is unknown
		verdict, colour = "waits", text.Yellow
	case phase.Waits() && status.Reason == "":
		verdict, colour = "is about to be tried", text.Yellow
	case phase.Waits():
		verdict, colour = "waits: "+string(status.Reason), phaseCell(string(phase), status.Reason).Colour
	case phase == v1alpha1.PhaseReserved:
		verdict = "holds quota and waits for its admission checks"
	case phase == v1alpha1.PhaseDequeued:
		verdict, colour = "is admitted, and its pods do not run yet", text.Green
	case phase == v1alpha1.PhaseRunning && status.Reason == wellknown.ReasonPodsRemain:
		verdict, colour = "has ended, and still holds quota", text.Yellow
	case phase == v1alpha1.PhaseRunning:
		verdict, colour = "runs", text.Green
	case phase == v1alpha1.PhaseSucceeded:
		verdict = "has succeeded"
	case phase == v1alpha1.PhaseFailed:
		verdict, colour = "has failed", text.Red
	default:
		verdict = "is in phase " + status.Phase
	}
	if !phase.Waits() && status.Reason != "" {
		verdict += ": " + string(status.Reason)
	}
	return verdict, colour
}

func facts(w *strings.Builder, about Subject, status *visibility.QueueUnitReviewStatus, now time.Time) {
	fmt.Fprintln(w)
	fact := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%-10s %s\n", name+":", text.Clean(value))
		}
	}
	fact("Unit", about.Namespace+"/"+about.Unit)
	queue := status.Queue
	if queue != "" && status.Policy != "" {
		queue += ", policy " + status.Policy
	}
	fact("Queue", queue)
	if status.Position > 0 {
		fact("Position", fmt.Sprintf("%d of %d", status.Position, status.Waiting))
	}
	if status.Start != nil && v1alpha1.QueueUnitPhase(status.Phase).Waits() {
		fact("Starts", StartText(status.Start, now))
	}
	fact("Quota", status.Quota)
	fact("Requests", Amounts(status.Requests))
	fact("Priority", fmt.Sprint(status.Priority))
	if status.Until != nil {
		fact("Until", timeText(status.Until)+" at the latest")
	}
}

// StartText returns how long from now a unit is expected to start, such as "in about 2 h (1 h to 4 h)".
func StartText(start *visibility.StartEstimate, now time.Time) string {
	in := func(at metav1.Time) string { return text.Rough(at.Sub(now)) }
	if in(start.Earliest) == in(start.Latest) {
		return "in about " + in(start.Time)
	}
	return fmt.Sprintf("in about %s (%s to %s)", in(start.Time), in(start.Earliest), in(start.Latest))
}

// PodRange returns with how many pods of a set a job can start: "10" or "4-10".
func PodRange(set *v1alpha1.PodSet) string {
	if set.MinCount != nil && *set.MinCount < set.Count {
		return fmt.Sprintf("%d-%d", *set.MinCount, set.Count)
	}
	return fmt.Sprint(set.Count)
}

func podSets(w *strings.Builder, sets []v1alpha1.PodSet, view View) {
	table := &text.Table{Columns: []text.Column{{Title: "  POD-SET", Least: leastName}, {Title: "PODS", Right: true}, {Title: "REQUESTS-EACH", Least: leastText}}}
	for i := range sets {
		set := &sets[i]
		table.Add("  "+set.Name, PodRange(set), orNone(Amounts(set.Requests)))
	}
	write(w, table, view)
}

func lacks(w *strings.Builder, list []visibility.Lack, view View) {
	table := &text.Table{Columns: []text.Column{{Title: "  QUOTA", Least: leastName}, {Title: "RESOURCE", Least: leastText}, {Title: "REQUESTED", Right: true}, {Title: "USED", Right: true},
		{Title: "LIMIT", Right: true}, {Title: "MISSING", Right: true}}}
	for _, lack := range list {
		table.Add("  "+lack.Quota, ResourceName(lack.Resource), lack.Requested, lack.Used, strings.ToLower(lack.Bound)+" "+lack.Limit, lack.Missing)
	}
	write(w, table, view)
}

func holders(w *strings.Builder, list []visibility.Holder, view View) {
	table := &text.Table{Columns: []text.Column{{Title: "  QUOTA", Least: leastName}, {Title: "UNITS", Right: true}, {Title: "USED", Least: leastText},
		{Title: "BORROWED", Least: leastText, Optional: true}, {Title: "UNQUEUED", Least: leastText, Optional: true, Meaning: unqueuedMeaning}}}
	for _, h := range list {
		table.Add("  "+h.Quota, fmt.Sprint(h.Units), orNone(Amounts(h.Used)), orNone(Amounts(h.Borrowed)), orNone(Amounts(h.Unqueued)))
	}
	write(w, table, view)
}

func summaries(w *strings.Builder, list []visibility.UnitSummary, view View) error {
	if len(list) == 0 {
		return nil
	}
	table := &text.Table{Columns: []text.Column{{Title: "  NAMESPACE", Least: leastText}, {Title: "JOB", Least: leastName}, {Title: "PHASE"}, {Title: "PRIORITY"}, {Title: "REQUESTS", Least: leastText}, {Title: "AGE"},
		{Title: "ENDS-BEFORE", Optional: true, Meaning: "when the job has run for its maximum execution time, and is stopped"}}}
	for _, u := range list {
		ends := ""
		if u.EndsBefore != nil {
			ends = timeText(u.EndsBefore)
		}
		table.AddCells(text.Cell{Text: "  " + u.Namespace}, text.Cell{Text: units.JobOf(u.Kind, u.Name)}, phaseCell(u.Phase, u.Reason), number(u.Priority), text.Cell{Text: Amounts(u.Requests)},
			text.Cell{Text: age(&u, view.Now)}, text.Cell{Text: ends})
	}
	write(w, table, view)
	return nil
}

func remedies(w *strings.Builder, about Subject, list []visibility.Remedy, view View) {
	for _, r := range list {
		words := strings.Fields(r.Message)
		var unnamed []string
		for _, u := range r.Units {
			name := units.JobOf(u.Kind, u.Name)
			if u.Namespace != about.Namespace {
				name += " (namespace " + u.Namespace + ")"
			}
			if !rename(words, u.Namespace+"/"+u.Name, name) {
				unnamed = append(unnamed, name)
			}
		}
		var out strings.Builder
		text.Wrap(&out, "    ", strings.Join(words, " "), view.Style.Width)
		fmt.Fprint(w, strings.Replace(out.String(), "    ", "  - ", 1))
		for _, name := range unnamed {
			note(w, "      %s", text.Clean(name))
		}
		if r.HiddenUnits > 0 && len(r.Units) > 0 { // if there are no other units, the message counts the hidden ones
			note(w, "      %s in namespaces that you cannot view", text.Count(int(r.HiddenUnits), "unit"))
		}
		if r.Command != "" {
			note(w, "      %s", text.Clean(r.Command)) // not wrapped, for copying
		}
	}
}

// rename replaces a name among the words of a message. It returns false if no word is the name.
func rename(words []string, from, to string) (found bool) {
	for i, word := range words {
		if end, is := strings.CutPrefix(word, from); is && strings.Trim(end, ",;") == "" {
			words[i], found = to+end, true
		}
	}
	return found
}

// write writes a table into memory, which cannot fail.
func write(w *strings.Builder, table *text.Table, view View) {
	_ = table.Write(w, view.Style, view.Header)
}

func orNone(t string) string {
	if t == "" {
		return text.None
	}
	return t
}
