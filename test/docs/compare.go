package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// elided is a line on a page for omitted lines, at the start or the end of an output, or both.
const elided = "[...]"

// Compare compares an output with what a page shows. Random parts of names, times and durations may differ. The rows
// of a table may be in another order, because they are sorted by name or by second. Everything else must be equal.
// Compare then learns the names on the page.
func (n *Names) Compare(shown, actual string) error {
	want, got := read(shown), read(actual)
	if len(want) == 0 {
		return nil
	}
	if want[0].text() == elided {
		want = want[1:]
		start := slices.IndexFunc(got, func(l line) bool { return len(want) > 0 && l.text() == want[0].text() })
		if start < 0 {
			return fmt.Errorf("there is no line %q", want[0].text())
		}
		got = got[start:]
	}
	if want[len(want)-1].text() == elided {
		want = want[:len(want)-1]
		got = got[:min(len(got), len(want))]
	}
	if len(want) != len(got) {
		return fmt.Errorf("%d lines instead of %d", len(got), len(want))
	}
	names := n.clone()
	for i := 0; i < len(want); {
		end := i + 1
		for end < len(want) && want[i].row && want[end].row {
			end++
		}
		if err := names.compareSet(want[i:end], got[i:end]); err != nil {
			return err
		}
		i = end
	}
	*n = *names
	return nil
}

// compareSet compares lines in any order. A line with known names determines the names in other lines, so the pairs
// are found one by one.
func (n *Names) compareSet(want, got []line) error {
	want, got = slices.Clone(want), slices.Clone(got)
	for len(want) > 0 {
		slices.SortStableFunc(want, func(a, b line) int { return strings.Compare(n.ofPage(a.text()), n.ofPage(b.text())) })
		slices.SortStableFunc(got, func(a, b line) int { return strings.Compare(n.onPage(a.text()), n.onPage(b.text())) })
		for i := range want {
			if one, other := n.ofPage(want[i].text()), n.onPage(got[i].text()); one != other {
				return fmt.Errorf("%q instead of %q", other, one)
			}
		}
		if err := n.learn(want[0].text(), got[0].text()); err != nil {
			return err
		}
		want, got = want[1:], got[1:]
	}
	return nil
}

// line is a line of an output: the cells of a table row, or one text.
type line struct {
	cells []string
	// row is true for lines of a table below its header.
	row bool
}

func (l line) text() string { return strings.Join(l.cells, " | ") }

var (
	// header is the first line of a table, of kubectl get, of the plugin or of the events of kubectl describe.
	header = regexp.MustCompile(`^ *(NAME|NAMESPACE|JOB)( +[A-Z][A-Z .-]*)*$|^ +Type +Reason +Age +From +Message$`)
	column = regexp.MustCompile(`\S+(?: \S+)*`)

	times     = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z`)
	durations = regexp.MustCompile(`\b(\d+d)?(\d+h)?(\d+m)?(\d+s)?\b`)
	processes = regexp.MustCompile(`\S+_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
)

// inTime are the columns whose durations depend on the time.
var inTime = []string{"AGE", "Age", "DURATION", "WAITED"}

// read reads an output. Empty lines end a table and are not significant otherwise.
func read(text string) []line {
	var lines []line
	var columns [][]int
	var titles string
	for whole := range strings.SplitSeq(text, "\n") {
		whole = strings.TrimRight(whole, " \t")
		switch {
		case whole == "":
			columns = nil
		case whole == elided:
			lines = append(lines, line{cells: []string{elided}})
		case header.MatchString(whole):
			titles, columns = whole, column.FindAllStringIndex(whole, -1)
			lines = append(lines, line{cells: cells(whole, titles, columns)})
		case columns == nil:
			lines = append(lines, line{cells: []string{timeless(whole)}})
		case strings.Trim(whole, " -") != "":
			lines = append(lines, line{cells: cells(whole, titles, columns), row: true})
		}
	}
	return lines
}

// timeless replaces points in time, and names of processes.
func timeless(text string) string {
	return processes.ReplaceAllString(times.ReplaceAllString(text, "<time>"), "<process>")
}

// cells are the cells of a line of a table, below the titles of the columns.
func cells(whole, titles string, columns [][]int) []string {
	var all []string
	for i, at := range columns {
		cell := ""
		if start := at[0]; start < len(whole) {
			end := len(whole)
			if i+1 < len(columns) {
				end = min(end, columns[i+1][0])
			}
			cell = timeless(strings.TrimSpace(whole[start:end]))
		}
		if slices.Contains(inTime, titles[at[0]:at[1]]) {
			cell = durations.ReplaceAllStringFunc(cell, func(found string) string {
				if found == "" {
					return ""
				}
				return "<duration>"
			})
		}
		all = append(all, cell)
	}
	return all
}
