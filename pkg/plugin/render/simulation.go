package render

import (
	"fmt"
	"io"
	"strings"

	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
)

// Simulation writes what would start and what would wait. withTree says whether another tree was tried.
func Simulation(to io.Writer, s *objects.Simulation, withTree bool, view View) error {
	w := &strings.Builder{}
	if withTree {
		verdict, colour := "The tree is valid.", text.Green
		if len(s.Faults) > 0 {
			verdict, colour = "The tree is invalid.", text.Red
		}
		fmt.Fprintln(w, view.Style.Paint(colour, verdict))
	}
	for _, fault := range s.Faults {
		text.Wrap(w, "  ", "error: "+fault, view.Style.Width)
	}
	for _, warning := range s.Warnings {
		text.Wrap(w, "  ", "warning: "+warning, view.Style.Width)
	}
	for _, limit := range s.OverLimits {
		text.Wrap(w, "  ", "exceeded by what runs: "+limit, view.Style.Width)
	}
	if len(s.Faults) == 0 {
		if err := decisions(w, s, withTree, view); err != nil {
			return err
		}
	}
	_, err := io.WriteString(to, w.String())
	return err
}

func decisions(w *strings.Builder, s *objects.Simulation, withTree bool, view View) error {
	if len(s.Jobs) > 0 {
		jobs(w, s.Jobs, view)
	}
	view.Namespaces = true
	for _, part := range []struct {
		groups []visibility.UnitGroup
		what   string
		always bool
	}{
		{s.Started, "that waits now would start", withTree},
		{s.Evicted, "that holds quota would be evicted", false},
		{s.Waiting, "would wait", withTree},
	} {
		if len(part.groups) == 0 && !part.always {
			continue
		}
		separate(w)
		n := unitsIn(part.groups)
		what := part.what
		if n != 1 {
			what = strings.NewReplacer("waits", "wait", "holds", "hold").Replace(what)
		}
		fmt.Fprintf(w, "%s %s.\n", text.Count(n, "unit"), what)
		if n > 0 {
			if err := Groups(w, part.groups, view); err != nil {
				return err
			}
		}
	}
	return nil
}

func separate(w *strings.Builder) {
	if w.Len() > 0 {
		w.WriteByte('\n')
	}
}

func unitsIn(groups []visibility.UnitGroup) int {
	sum := 0
	for _, g := range groups {
		sum += int(g.Units)
	}
	return sum
}

func jobs(w *strings.Builder, list []objects.SimulatedJob, view View) {
	separate(w)
	table := &text.Table{Columns: []text.Column{{Title: "NAMESPACE", Least: leastText}, {Title: "JOB", Least: leastName}, {Title: "RESULT"}, {Title: "QUOTA", Least: leastText}, {Title: "REASON"}}}
	for _, job := range list {
		result := text.Cell{Text: "starts", Colour: text.Green}
		if !job.Starts {
			result = text.Cell{Text: "waits", Colour: text.Yellow}
		}
		table.AddCells(text.Cell{Text: job.Namespace}, text.Cell{Text: job.Name}, result, text.Cell{Text: job.Quota}, reasonCell(job.Reason))
	}
	write(w, table, view)
	for _, job := range list {
		switch {
		case !job.Starts && job.Text != "":
			text.Wrap(w, "  ", fmt.Sprintf("%s/%s: %s", job.Namespace, job.Name, job.Text), view.Style.Width)
		case job.Starts && len(job.Checks) > 0:
			text.Wrap(w, "  ", fmt.Sprintf("%s/%s: starts when its admission checks are ready: %s", job.Namespace, job.Name, strings.Join(job.Checks, ", ")), view.Style.Width)
		}
	}
}
