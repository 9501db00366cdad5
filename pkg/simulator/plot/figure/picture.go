// Package figure draws panels of diagrams as an SVG image: a frame, two axes, series and a legend.
//
// Invariants. The same panels give the same bytes. The colors are safe for color-blind readers (palette of Okabe and
// Ito).
package figure

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// Colors of series, and the color of all other series together.
var (
	Colors     = []string{"#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7"}
	OtherColor = "#B0B0B0"
)

const style = `<style>
text{font-family:system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:#333}
.title{font-size:17px;font-weight:600;fill:#111}
.heading{font-size:14px;font-weight:600}
.label,.legend,.subtitle{font-size:12px}
.grid{stroke:#e4e4e4}
.tick{stroke:#888}
.frame{fill:none;stroke:#888}
.limit{stroke:#111;stroke-dasharray:6 4}
</style>
`

// Picture is an SVG under construction.
type Picture struct {
	bytes.Buffer
}

// New begins a picture of this size in pixels.
func New(width, height float64, title string) *Picture {
	p := &Picture{}
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img">`+"\n",
		Number(width), Number(height), Number(width), Number(height))
	fmt.Fprintf(p, "<title>%s</title>\n", Escape(title))
	p.WriteString(style)
	p.WriteString(`<rect width="100%" height="100%" style="fill:#fff"/>` + "\n")
	return p
}

// End returns the complete picture.
func (p *Picture) End() []byte {
	p.WriteString("</svg>\n")
	return p.Bytes()
}

// Escape escapes a text for XML.
func Escape(text string) string {
	var b strings.Builder
	// Writing to a strings.Builder never fails.
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}

// Number formats a number with one decimal, a tenth of a pixel.
func Number(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// Anchors of texts.
const (
	Start  = "start"
	Middle = "middle"
	End    = "end"
)

// Text writes a text of a class.
func (p *Picture) Text(x, y float64, anchor, class, text string) {
	fmt.Fprintf(p, `<text x="%s" y="%s" text-anchor="%s" class="%s">%s</text>`+"\n", Number(x), Number(y), anchor, class, Escape(text))
}

// Line writes a line of a class.
func (p *Picture) Line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(p, `<line x1="%s" y1="%s" x2="%s" y2="%s" class="%s"/>`+"\n", Number(x1), Number(y1), Number(x2), Number(y2), class)
}

// Rect writes a rectangle of a class.
func (p *Picture) Rect(x, y, w, h float64, class string) {
	fmt.Fprintf(p, `<rect x="%s" y="%s" width="%s" height="%s" class="%s"/>`+"\n", Number(x), Number(y), Number(w), Number(h), class)
}

// Path writes the path of a series. Browsers show its name as a tooltip.
func (p *Picture) Path(class, name, style string, points []Point, closed bool) {
	var d strings.Builder
	for i, at := range points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&d, "%s%s %s", command, Number(at.X), Number(at.Y))
	}
	if closed {
		d.WriteString("Z")
	}
	fmt.Fprintf(p, `<path class="%s" data-series="%s" style="%s" d="%s"><title>%s</title></path>`+"\n", class, Escape(name), style, d.String(), Escape(name))
}

// Point is a position in the picture, in pixels.
type Point struct{ X, Y float64 }
