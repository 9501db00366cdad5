package plot

import (
	"fmt"
	"math"
)

// Lengths in pixels.
const (
	pictureWidth = 1000
	panelLeft    = 74
	panelWidth   = 730
	legendLeft   = panelLeft + panelWidth + 18
	// panelTop is the space above a panel for its title, panelBottom the space below for
	// the labels of its axis.
	panelTop, panelBottom = 30, 44
	legendLine            = 18
)

// axis is an axis, from the value at the left or lower edge of the panel to the value at the
// other edge.
type axis struct {
	from, to float64
	log      bool
	ticks    []tick
	title    string
}

// part returns the position of the value on the axis, from 0 to 1.
func (a *axis) part(v float64) float64 {
	from, to := a.from, a.to
	if a.log {
		v, from, to = math.Log(max(v, a.from)), math.Log(from), math.Log(to)
	}
	if to <= from {
		return 0
	}
	return min(max((v-from)/(to-from), 0), 1)
}

// entry is an entry of a legend.
type entry struct {
	name, style string
	area        bool
}

// panel is one diagram: a frame, two axes, series and a legend.
type panel struct {
	name   string
	title  string
	top    float64
	height float64
	x, y   axis
	legend []entry
	draw   func(p *picture, at func(x, y float64) point)
}

// at returns the position of a pair of values in the picture.
func (d *panel) at(x, y float64) point {
	return point{panelLeft + panelWidth*d.x.part(x), d.top + d.height*(1-d.y.part(y))}
}

func (d *panel) write(p *picture) {
	fmt.Fprintf(p, `<g class="panel" data-panel="%s">`+"\n", escape(d.name))
	p.text(panelLeft, d.top-10, start, "heading", d.title)
	for _, t := range d.y.ticks {
		y := d.at(0, t.at).y
		p.line(panelLeft, y, panelLeft+panelWidth, y, "grid")
		p.text(panelLeft-8, y+4, end, "label", t.label)
	}
	for _, t := range d.x.ticks {
		if d.x.part(t.at) == 1 && t.at > d.x.to {
			break
		}
		x := d.at(t.at, 0).x
		p.line(x, d.top+d.height, x, d.top+d.height+5, "tick")
		p.text(x, d.top+d.height+19, middle, "label", t.label)
	}
	d.draw(p, d.at)
	p.rect(panelLeft, d.top, panelWidth, d.height, "frame")
	p.text(panelLeft+panelWidth/2, d.top+d.height+36, middle, "label", d.x.title)
	fmt.Fprintf(p, `<text transform="translate(16 %s) rotate(-90)" text-anchor="middle" class="label">%s</text>`+"\n", number(d.top+d.height/2), escape(d.y.title))
	for i, e := range d.legend {
		y := d.top + 6 + float64(i)*legendLine
		if e.area {
			fmt.Fprintf(p, `<rect x="%d" y="%s" width="14" height="12" style="%s"/>`+"\n", legendLeft, number(y-6), e.style)
		} else {
			fmt.Fprintf(p, `<line x1="%d" y1="%s" x2="%d" y2="%s" style="%s"/>`+"\n", legendLeft, number(y), legendLeft+22, number(y), e.style)
		}
		p.text(legendLeft+28, y+4, start, "legend", e.name)
	}
	p.WriteString("</g>\n")
}
