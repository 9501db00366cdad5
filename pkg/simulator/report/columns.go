package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// columns is a table. Its first column is left-aligned, the others are right-aligned.
type columns struct {
	rows [][]string
}

func (c *columns) row(cells ...string) {
	c.rows = append(c.rows, cells)
}

func (c *columns) write(w io.Writer, indent string) {
	var widths []int
	for _, cells := range c.rows {
		for i, cell := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, cells := range c.rows {
		var line strings.Builder
		for i, cell := range cells {
			fill := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch i {
			case 0:
				line.WriteString(indent + cell + fill)
			default:
				line.WriteString("  " + fill + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// wrap writes a text in lines of at most width characters.
func wrap(w io.Writer, first, indent, text string, width int) {
	line := first
	empty := true
	for word := range strings.FieldsSeq(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			fmt.Fprintln(w, line)
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	fmt.Fprintln(w, line)
}
