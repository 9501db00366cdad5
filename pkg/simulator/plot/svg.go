package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// picture is an SVG under construction.
type picture struct {
	bytes.Buffer
}

func escape(text string) string {
	var b strings.Builder
	// Writing to a strings.Builder never fails.
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}

// number formats a number with one decimal, a tenth of a pixel.
func number(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// Anchors of texts.
const (
	start  = "start"
	middle = "middle"
	end    = "end"
)

func (p *picture) text(x, y float64, anchor, class, text string) {
	fmt.Fprintf(p, `<text x="%s" y="%s" text-anchor="%s" class="%s">%s</text>`+"\n", number(x), number(y), anchor, class, escape(text))
}

func (p *picture) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(p, `<line x1="%s" y1="%s" x2="%s" y2="%s" class="%s"/>`+"\n", number(x1), number(y1), number(x2), number(y2), class)
}

func (p *picture) rect(x, y, w, h float64, class string) {
	fmt.Fprintf(p, `<rect x="%s" y="%s" width="%s" height="%s" class="%s"/>`+"\n", number(x), number(y), number(w), number(h), class)
}

// path writes the path of a series. Browsers show its name as a tooltip.
func (p *picture) path(class, name, style string, points []point, closed bool) {
	var d strings.Builder
	for i, at := range points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&d, "%s%s %s", command, number(at.x), number(at.y))
	}
	if closed {
		d.WriteString("Z")
	}
	fmt.Fprintf(p, `<path class="%s" data-series="%s" style="%s" d="%s"><title>%s</title></path>`+"\n", class, escape(name), style, d.String(), escape(name))
}

// point is a position in the picture, in pixels.
type point struct{ x, y float64 }
