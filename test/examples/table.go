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

const introduction = `# Examples of the operators

The outcome of each example of a queued kind in the modules of the operators. Each was created with
the annotation ` + "`scheduling.x-k8s.io/suspend: \"true\"`" + ` and no other change.

- Queued: the example has a QueueUnit that waits for quota. "pods" and "requests" are those of the
  unit. "#2" is the second example of a file.
- Not queued: the job exists, but cannot wait for quota. The message is that of its unit.
- Not created: no cluster accepts the document, with or without kube-queue.

"real pods" compares the unit with the pods of the released example, as ` + "`make test-examples`" + ` finds
them. Workflows are not compared, because their owner specifies their size.

` + "`go test ./test/examples -update`" + ` writes this file.
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
	fmt.Fprintf(page, "\n## %s %s\n\n`%s` of module `%s@%s`: %s", r.Operator, r.Module.Version, strings.Join(r.Folders, "`, `"),
		r.Module.Path, r.Module.Version, plural(len(r.Examples), "example"))
	if others := r.others(); others != "" {
		fmt.Fprintf(page, "; documents of other kinds: %s", others)
	}
	page.WriteString(".\n")
	if r.About != "" {
		fmt.Fprintf(page, "\n%s\n", r.About)
	}
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
	page.WriteString("\n| example | kind | pods | requests | result | real pods |\n|---|---|---|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(page, "| %s | %s | %s | %s | %s | %s |\n", row.file, row.kind, row.pods, row.demand, cell(row.result), cell(row.real))
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

// row is a row of a table.
type row struct{ file, kind, pods, demand, result, real string }

func (r *Report) row(o *Outcome) row {
	file := o.File
	if len(r.Folders) == 1 {
		file = strings.TrimPrefix(file, r.Folders[0]+"/")
	}
	line := row{file: file, kind: o.Kind.Kind}
	switch {
	case o.Refused != "":
		line.result = "not created: " + o.Refused
	case o.Invalid != "":
		line.result = fmt.Sprintf("not queued: %s: %s", wellknown.ReasonInvalidRequest, o.Invalid)
	case o.Warning != "":
		line.pods, line.demand, line.result = "–", textOf(o.Unit.Spec.Resource), "queued, with a warning: "+o.Warning
	default:
		line.pods, line.demand, line.result, line.real = fmt.Sprint(o.Pods()), textOf(o.Unit.Spec.Resource), "queued", "the same"
	}
	if difference, differs := DifferenceOf(r.Operator, o.File); differs {
		line.real = difference.Real + ": " + difference.Why
	}
	return line
}

// summarize writes one line for each set of rows that differ only in the file, and returns the
// other rows.
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
			alike = append(alike, fmt.Sprintf("- %d of kind %s: %s", n, r.kind, r.result))
			counts[same] = 0
		}
	}
	fmt.Fprintf(page, "\n%s\n", strings.Join(alike, "\n"))
	return others
}

// cell escapes a text for a table cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
