// Package text draws what the kubectl plugin prints: tables that fit the width of a terminal, bars, colours and ages.
// It does not access a cluster or a terminal: Style says what the output can show.
package text

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Style is what the output can show.
type Style struct {
	// Width is the number of characters in a line of the terminal; 0 if lines are never truncated.
	Width int
	// Colour and Bars say whether colours and bars are shown.
	Colour, Bars bool
}

// Colour is a colour of a terminal.
type Colour string

// The colours.
const (
	Plain  Colour = ""
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
)

// Paint returns the text in the colour, if the style has colours.
func (s Style) Paint(colour Colour, text string) string {
	if !s.Colour || colour == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(colour) + "m" + text + "\x1b[0m"
}

// Cell is a cell of a table.
type Cell struct {
	Text   string
	Colour Colour
}

// Column is a column of a table.
type Column struct {
	Title string
	// Least is the minimum width of the column when it is truncated to fit the terminal; 0 if it must not be
	// truncated.
	Least int
	// Right aligns the cells to the right.
	Right bool
	// Optional omits the column if all its cells are empty.
	Optional bool
	// Meaning, if set, explains the title below the table, unless all cells of the column are empty.
	Meaning string
}

// None is the text of a cell for an amount that is not set. Such a cell counts as empty.
const None = "-"

const gap = "   "

// Table is a table with a header.
type Table struct {
	Columns []Column
	// Widths, if set, are the widths of an earlier table with the same columns, all of them present. The columns of this
	// table are at least as wide, and their widths are stored here.
	Widths *[]int
	rows   [][]Cell
}

// Add adds a row of plain cells.
func (t *Table) Add(texts ...string) {
	cells := make([]Cell, len(texts))
	for i, text := range texts {
		cells[i].Text = text
	}
	t.AddCells(cells...)
}

// AddCells adds a row. Missing cells are empty.
func (t *Table) AddCells(cells ...Cell) {
	row := make([]Cell, len(t.Columns))
	copy(row, cells)
	for i := range row {
		row[i].Text = Clean(row[i].Text)
	}
	t.rows = append(t.rows, row)
}

// Write writes the table. With header, it also writes the titles and their meanings.
func (t *Table) Write(to io.Writer, style Style, header bool) error {
	t.omit()
	widths := t.widths(header)
	if t.Widths != nil {
		for i, width := range *t.Widths {
			widths[i] = max(widths[i], width)
		}
		*t.Widths = slices.Clone(widths)
	}
	fit(widths, t.Columns, style.Width)
	var out strings.Builder
	if header {
		titles := make([]Cell, len(t.Columns))
		for i, column := range t.Columns {
			titles[i].Text = column.Title
		}
		t.line(&out, titles, widths, style)
	}
	for _, row := range t.rows {
		t.line(&out, row, widths, style)
	}
	if header {
		t.explain(&out, style)
	}
	_, err := io.WriteString(to, out.String())
	return err
}

// omit removes optional columns without content.
func (t *Table) omit() {
	for i := len(t.Columns) - 1; i >= 0; i-- {
		if !t.Columns[i].Optional || t.hasContent(i) {
			continue
		}
		t.Columns = slices.Delete(t.Columns, i, i+1)
		for j := range t.rows {
			t.rows[j] = slices.Delete(t.rows[j], i, i+1)
		}
	}
}

func (t *Table) hasContent(column int) bool {
	return slices.ContainsFunc(t.rows, func(row []Cell) bool { return row[column].Text != "" && row[column].Text != None })
}

// explain writes the meanings of titles after an empty line, indented like the table.
func (t *Table) explain(out *strings.Builder, style Style) {
	empty := "\n"
	first := t.Columns[0].Title
	indent := first[:len(first)-len(strings.TrimLeft(first, " "))]
	for i, column := range t.Columns {
		if column.Meaning != "" && t.hasContent(i) {
			out.WriteString(empty)
			empty = ""
			Wrap(out, indent, column.Title+": "+column.Meaning, style.Width)
		}
	}
}

func (t *Table) widths(header bool) []int {
	widths := make([]int, len(t.Columns))
	for i, column := range t.Columns {
		if header {
			widths[i] = utf8.RuneCountInString(column.Title)
		}
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].Text))
		}
	}
	return widths
}

// fit makes columns narrower, the widest first, until the table fits the width.
func fit(widths []int, columns []Column, width int) {
	if width <= 0 {
		return
	}
	total := len(gap) * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > width; total-- {
		widest := -1
		for i, column := range columns {
			if column.Least > 0 && widths[i] > column.Least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

func (t *Table) line(out *strings.Builder, row []Cell, widths []int, style Style) {
	var line strings.Builder
	blanks := 0
	for i, cell := range row {
		shown := Truncate(cell.Text, widths[i])
		fill := widths[i] - utf8.RuneCountInString(shown)
		before, after := 0, fill
		if t.Columns[i].Right {
			before, after = fill, 0
		}
		if shown != "" {
			line.WriteString(strings.Repeat(" ", blanks+before))
			line.WriteString(style.Paint(cell.Colour, shown))
			blanks = after
		} else {
			blanks += fill
		}
		blanks += len(gap)
	}
	out.WriteString(line.String() + "\n")
}

// Truncate shortens the text to the given number of characters. A shortened text ends with ….
func Truncate(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	if width <= 0 {
		return ""
	}
	return string([]rune(text)[:width-1]) + "…"
}

// Clean replaces line breaks, control characters and bidirectional controls, because they could change what the
// terminal shows.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, text)
}

// Wrap writes the text in indented lines of at most the width. A word that is too long gets its own line. With width
// 0, it writes one line.
func Wrap(to io.Writer, indent, text string, width int) {
	line := ""
	flush := func() {
		if line != "" {
			fmt.Fprintln(to, indent+line)
		}
		line = ""
	}
	for _, word := range strings.Fields(Clean(text)) {
		if line != "" && width > 0 && utf8.RuneCountInString(indent+line+" "+word) > width {
			flush()
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	flush()
}
