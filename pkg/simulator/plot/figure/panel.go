package figure

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// LegendLine is the height of a line of a legend.
const LegendLine = 18

// Axis is an axis, from the value at the left or lower edge of the panel to the value at the
// other edge.
type Axis struct {
	From, To float64
	Log      bool
	Ticks    []Tick
	Title    string
}

// part returns the position of the value on the axis, from 0 to 1.
func (a *Axis) part(v float64) float64 {
	from, to := a.From, a.To
	if a.Log {
		v, from, to = math.Log(max(v, a.From)), math.Log(from), math.Log(to)
	}
	if to <= from {
		return 0
	}
	return min(max((v-from)/(to-from), 0), 1)
}

// Entry is an entry of a legend.
type Entry struct {
	Name, Style string
	Area        bool
}

// Panel is one diagram: a frame at a position in pixels, two axes, series and a legend.
type Panel struct {
	Name                     string
	Title                    string
	Left, Top, Width, Height float64
	X, Y                     Axis
	Legend                   []Entry
	// Below is whether the legend is below the panel, in lines of the same width. Otherwise it is to the right.
	Below bool
	Draw  func(p *Picture, at func(x, y float64) Point)
}

// at returns the position of a pair of values in the picture.
func (d *Panel) at(x, y float64) Point {
	return Point{d.Left + d.Width*d.X.part(x), d.Top + d.Height*(1-d.Y.part(y))}
}

// Write writes the panel.
func (d *Panel) Write(p *Picture) {
	fmt.Fprintf(p, `<g class="panel" data-panel="%s">`+"\n", Escape(d.Name))
	p.Text(d.Left, d.Top-10, Start, "heading", d.Title)
	for _, t := range d.Y.Ticks {
		y := d.at(0, t.At).Y
		p.Line(d.Left, y, d.Left+d.Width, y, "grid")
		p.Text(d.Left-8, y+4, End, "label", t.Label)
	}
	for _, t := range d.X.Ticks {
		if d.X.part(t.At) == 1 && t.At > d.X.To {
			break
		}
		x := d.at(t.At, 0).X
		p.Line(x, d.Top+d.Height, x, d.Top+d.Height+5, "tick")
		p.Text(x, d.Top+d.Height+19, Middle, "label", t.Label)
	}
	d.Draw(p, d.at)
	p.Rect(d.Left, d.Top, d.Width, d.Height, "frame")
	if d.X.Title != "" {
		p.Text(d.Left+d.Width/2, d.Top+d.Height+36, Middle, "label", d.X.Title)
	}
	if d.Y.Title != "" {
		fmt.Fprintf(p, `<text transform="translate(%s %s) rotate(-90)" text-anchor="middle" class="label">%s</text>`+"\n", Number(d.Left-58), Number(d.Top+d.Height/2), Escape(d.Y.Title))
	}
	places := d.places()
	for i, e := range d.Legend {
		x, y := places[i].X, places[i].Y
		if e.Area {
			fmt.Fprintf(p, `<rect x="%s" y="%s" width="14" height="12" style="%s"/>`+"\n", Number(x), Number(y-6), e.Style)
		} else {
			fmt.Fprintf(p, `<line x1="%s" y1="%s" x2="%s" y2="%s" style="%s"/>`+"\n", Number(x), Number(y), Number(x+22), Number(y), e.Style)
		}
		p.Text(x+28, y+4, Start, "legend", e.Name)
	}
	p.WriteString("</g>\n")
}

// places returns the positions of the entries of the legend.
func (d *Panel) places() []Point {
	var places []Point
	at := Point{d.Left + d.Width + 18, d.Top + 6}
	if d.Below {
		at = Point{d.Left, d.Top + d.Height + 34}
	}
	for _, e := range d.Legend {
		width := 48 + 6.4*float64(utf8.RuneCountInString(e.Name)) // about the width of the text
		if d.Below && at.X > d.Left && at.X+width > d.Left+d.Width {
			at = Point{d.Left, at.Y + LegendLine}
		}
		places = append(places, at)
		if d.Below {
			at.X += width
		} else {
			at.Y += LegendLine
		}
	}
	return places
}

// LegendHeight returns the height of a legend below the panel, in pixels.
func (d *Panel) LegendHeight() float64 {
	places := d.places()
	if len(places) == 0 {
		return 0
	}
	return places[len(places)-1].Y - places[0].Y + LegendLine
}
