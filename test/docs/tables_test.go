package docs

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

// delimiterRow is the second row of a table.
var delimiterRow = regexp.MustCompile(`^\|(\s*:?-+:?\s*\|)+\s*$`)

func TestEachTableOfThePagesIsOneWithTheSameColumnsInEachRow(t *testing.T) {
	pages, err := ReadPages(os.DirFS("../.."))
	require.NoError(t, err)
	tables := 0
	for _, page := range pages {
		text, err := os.ReadFile("../../" + page.Path)
		require.NoError(t, err)
		n, faults := tableFaults(string(text))
		tables += n
		for _, fault := range faults {
			t.Errorf("%s:%s", page.Path, fault)
		}
	}
	if tables < 100 {
		t.Errorf("only %d tables were found", tables)
	}
}

func TestATableThatIsBrokenIsFound(t *testing.T) {
	for _, c := range []struct {
		name, text string
		tables     int
		want       []string
	}{
		{"a table", "a\n\n| a | b |\n|---|:-:|\n| 1 | 2 \\| 3 |\n| | `x` |\n\nb", 1, nil},
		{"a row without a cell", "| a | b |\n|---|---|\n| 1 |\n", 1, []string{"3: the row has 1 columns, and the table 2: | 1 |"}},
		{"a row with a pipe in a cell", "| a | b |\n|---|---|\n| 1 | `x|y` |\n", 1, []string{"3: the row has 3 columns, and the table 2: | 1 | `x|y` |"}},
		{"rows after a blank line", "| a |\n|---|\n| 1 |\n\n| 2 |\n| 3 |\n", 2, []string{"5: the table has no header; remove the line above it if it continues a table: | 2 |"}},
		{"a row that does not end", "| a | b |\n|---|---|\n| 1 | 2\n", 1, []string{"3: the row has 1 columns, and the table 2: | 1 | 2"}},
		{"pipes in a block", "```\n| a\n|| b\n```\n", 0, nil},
	} {
		if n, got := tableFaults(c.text); n != c.tables || !slices.Equal(got, c.want) {
			t.Errorf("%s: %d tables, faults %q, want %d, %q", c.name, n, got, c.tables, c.want)
		}
	}
}

// tableFaults returns the number of tables in the text, and what is wrong with them.
func tableFaults(text string) (tables int, faults []string) {
	lines := strings.Split(text, "\n")
	inBlock, columns := false, 0
	for i, line := range lines {
		if fence.MatchString(line) || strings.TrimSpace(line) == "```" {
			inBlock = !inBlock
		}
		line = strings.TrimSpace(line)
		switch isRow := !inBlock && strings.HasPrefix(line, "|"); {
		case !isRow:
			columns = 0
		case columns == 0: // the first row
			tables++
			columns = columnsOf(line)
			if i+1 == len(lines) || !delimiterRow.MatchString(strings.TrimSpace(lines[i+1])) {
				faults = append(faults, fmt.Sprintf("%d: the table has no header; remove the line above it if it continues a table: %s", i+1, line))
			}
		case columnsOf(line) != columns:
			faults = append(faults, fmt.Sprintf("%d: the row has %d columns, and the table %d: %s", i+1, columnsOf(line), columns, line))
		}
	}
	return tables, faults
}

// columnsOf returns the number of cells of a row. A pipe after a backslash is part of a cell.
func columnsOf(row string) int {
	return strings.Count(strings.ReplaceAll(row, `\|`, ""), "|") - 1
}
