package audit

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Print prints the report.
func (r Report) Print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d lines, %d writes, %s to %s (%s)\n", r.Lines, r.Entries,
		clock(r.From), clock(r.To), r.To.Sub(r.From).Round(time.Millisecond))
	var kinds []string
	for _, k := range r.Jobs {
		kinds = append(kinds, fmt.Sprintf("%d %s (%d queued)", k.Count, k.Kind, k.Queued))
	}
	fmt.Fprintf(&b, "jobs: %s\n", cmp.Or(strings.Join(kinds, ", "), "none"))
	fmt.Fprintf(&b, "units: %d   pods: %d   valid quota trees: %d   oversell rate: %s\n", r.Units, r.Pods, r.Trees, r.Oversell)
	if r.Quotas > 0 {
		fmt.Fprintf(&b, "ResourceQuotas that limit pods: %d\n", r.Quotas)
	}
	if r.Unfinished {
		b.WriteString("the last line is incomplete and was skipped\n")
	}
	if r.Cut > 0 {
		fmt.Fprintf(&b, "%d entries lack their objects, because these were too large for the log\n", r.Cut)
	}
	if r.Unanswered > 0 {
		fmt.Fprintf(&b, "%d writes have no response, and the log does not show whether they succeeded; they count as failed\n", r.Unanswered)
	}
	if r.Doubts > 0 {
		fmt.Fprintf(&b, "%d units and pods were not counted in sums after writes that do not show what became of them\n", r.Doubts)
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

func (r Report) printViolations(b *strings.Builder) {
	found := 0
	for _, c := range r.Checks {
		found += c.Found
	}
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
