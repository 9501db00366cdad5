package audit

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Print prints the report.
func (r Report) Print(out io.Writer) error {
	var b strings.Builder
	l, s := r.Log, r.world
	fmt.Fprintf(&b, "%d lines, %d writes, %s to %s (%s)\n", l.Lines, l.Entries,
		clock(l.From), clock(l.To), l.To.Sub(l.From).Round(time.Millisecond))
	fmt.Fprintf(&b, "jobs: %s\n", cmp.Or(strings.Join(s.jobsByKind(), ", "), "none"))
	fmt.Fprintf(&b, "units: %d   pods: %d   valid quota trees: %d   oversell rate: %s\n", len(s.units), len(s.pods), len(s.trees.versions), r.oversell)
	quotas := 0
	for _, all := range s.quotas {
		quotas += len(slices.DeleteFunc(slices.Clone(all), func(q *quota) bool { return !q.limitsPods() }))
	}
	if quotas > 0 {
		fmt.Fprintf(&b, "ResourceQuotas that limit pods: %d\n", quotas)
	}
	if l.Unfinished {
		b.WriteString("the last line is incomplete and was skipped\n")
	}
	if l.Cut > 0 {
		fmt.Fprintf(&b, "%d entries lack their objects, because these were too large for the log\n", l.Cut)
	}
	if l.Unanswered > 0 {
		fmt.Fprintf(&b, "%d writes of jobs and units have no response; what they changed is not judged\n", l.Unanswered)
	}
	if s.doubts > 0 {
		fmt.Fprintf(&b, "%d times, the log does not show what became of a job, a unit or a pod\n", s.doubts)
	}
	b.WriteByte('\n')
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CHECK\tCHECKED\tNOT CHECKED\tVIOLATIONS\tLAW")
	for _, c := range r.Checks {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%s\n", c.Name, c.Checked, c.NotChecked, c.Found, c.Doc)
	}
	table.Flush()
	for _, c := range r.Checks {
		for _, note := range c.Notes {
			fmt.Fprintf(&b, "note on %s: %s\n", c.Name, note)
		}
	}
	r.printViolations(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

// jobsByKind counts the jobs of each kind, and how many of them were queued.
func (s *world) jobsByKind() (counts []string) {
	for _, k := range allKinds {
		all, queued := 0, 0
		for _, j := range s.jobs {
			if j.now.kind != k {
				continue
			}
			if all++; j.wasUnit {
				queued++
			}
		}
		name := k.Kind
		if k.Version != anyVersion && k.Group != "batch" {
			name += "." + k.Version
		}
		if all > 0 {
			counts = append(counts, fmt.Sprintf("%d %s (%d queued)", all, name, queued))
		}
	}
	return counts
}

func (r Report) printViolations(b *strings.Builder) {
	found := r.found()
	if found == 0 {
		b.WriteString("\nno violations\n")
		return
	}
	fmt.Fprintf(b, "\nviolations: %d\n", found)
	for _, v := range r.Violations() {
		fmt.Fprintf(b, "\n%s  %s [%s]  line %d, revision %d\n  %s\n  %s\n", clock(v.Time), v.Check, v.Rule, v.Line, v.Revision, v.Object, v.Message)
	}
	for _, c := range r.Checks {
		if more := c.Found - len(c.Violations); more > 0 {
			fmt.Fprintf(b, "\n%s: and %d more\n", c.Name, more)
		}
	}
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000000") }
