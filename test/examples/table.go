package examples

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Report is what became of the examples of a source.
type Report struct {
	*Collection
	Outcomes []Outcome
}

const introduction = `# The operators' own examples

Every document that the modules of the operators ship as an example, created with the
annotation ` + "`scheduling.x-k8s.io/suspend: \"true\"`" + ` and no other change, on a real control
plane with the operators' CRDs and kube-queue's policies. No document is left without
a unit or a message that says why not.

Pods and what is asked for are those of the unit. Where the last column says "the
same", the example was also released, with its operator running and pods simulated, and
the greatest sum of requests over all pods that it had at one time was exactly that.

` + "`make test-examples`" + ` compares both; ` + "`go test ./test/examples -update`" + ` writes this page.
`

// Page writes all reports as a page of Markdown.
func Page(reports []*Report) []byte {
	var page bytes.Buffer
	page.WriteString(introduction)
	for _, report := range reports {
		report.write(&page)
	}
	return page.Bytes()
}

func (r *Report) write(page *bytes.Buffer) {
	fmt.Fprintf(page, "\n## %s\n\nModule `%s@%s`, `%s`: %d documents of kinds that are queued", r.Operator,
		r.Module.Path, r.Module.Version, strings.Join(r.Folders, "`, `"), len(r.Examples))
	if others := r.others(); others != "" {
		fmt.Fprintf(page, "; of others %s", others)
	}
	page.WriteString(".\n")
	rows := make([]row, len(r.Outcomes))
	for i := range r.Outcomes {
		rows[i] = r.row(&r.Outcomes[i])
	}
	if r.Summary {
		rows = summarize(page, rows)
	}
	if len(rows) == 0 {
		return
	}
	page.WriteString("\n| example | kind | pods | asks for | outcome | real pods |\n|---|---|---|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(page, "| %s | %s | %s | %s | %s | %s |\n", row.file, row.kind, row.pods, row.demand, cell(row.outcome), cell(row.real))
	}
}

// others counts the documents of other kinds.
func (r *Report) others() string {
	var counts []string
	for _, kind := range slices.Sorted(maps.Keys(r.Others)) {
		counts = append(counts, fmt.Sprintf("%d %s", r.Others[kind], kind))
	}
	return strings.Join(counts, ", ")
}

// row of a table.
type row struct{ file, kind, pods, demand, outcome, real string }

func (r *Report) row(o *Outcome) row {
	file := o.File
	if len(r.Folders) == 1 {
		file = strings.TrimPrefix(file, r.Folders[0]+"/")
	}
	line := row{file: file, kind: o.Kind.Name}
	switch {
	case o.Refused != "":
		line.outcome = "refused: " + o.Refused
	case o.Invalid != "":
		line.outcome = "InvalidRequest: " + o.Invalid
	case o.Warning != "":
		line.pods, line.demand, line.outcome = "–", Text(o.Unit.Spec.Resource), "queued, with a warning: "+o.Warning
	default:
		line.pods, line.demand, line.outcome, line.real = fmt.Sprint(o.Pods()), Text(o.Unit.Spec.Resource), "queued", "the same"
		if difference, differs := DifferenceOf(r.Operator, o.File); differs {
			line.real = difference.Real + ": " + difference.Why
		}
	}
	return line
}

// summarize counts the rows that say the same of many examples, and returns the others.
func summarize(page *bytes.Buffer, rows []row) []row {
	counts := map[row]int{}
	for _, r := range rows {
		r.file = ""
		counts[r]++
	}
	var alike []string
	var others []row
	for _, r := range rows {
		same := r
		same.file = ""
		switch n := counts[same]; {
		case n == 1:
			others = append(others, r)
		case n > 1:
			alike = append(alike, fmt.Sprintf("- %d of kind %s, asking for %s: %s", n, r.kind, r.demand, r.outcome))
			counts[same] = 0
		}
	}
	fmt.Fprintf(page, "\n%s\n", strings.Join(alike, "\n"))
	return others
}

// cell keeps a text in its cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
