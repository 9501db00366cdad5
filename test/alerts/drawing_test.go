package alerts

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"kube-queue.dev/kube-queue/pkg/simulator/plot/figure"
)

// The panels are drawn on cards in the dashboard's grid, like Grafana's light theme. Lengths are in pixels: a column
// and a line of the grid, the gap between cards, and the space above the grid.
const column, line, gap, head = 44.0, 30.0, 8.0, 66.0

// colors are those of thresholds.
var colors = map[string]string{"green": "#1A7F37", "yellow": "#9A6700", "red": "#CF222E"}

// dashboard has the parts of a Grafana dashboard that the tests read.
type dashboard struct {
	Title      string
	Panels     []*panel
	Templating struct {
		List []struct{ Name, Label, Type, Definition, AllValue string }
	}
}

// panel is a panel, or the heading of a row.
type panel struct {
	ID                       int
	Title, Type, Description string
	GridPos                  struct{ X, Y, W, H float64 }
	Targets                  []struct{ Expr, LegendFormat string }
	FieldConfig              struct {
		Defaults struct {
			Unit       string
			Thresholds struct {
				Steps []struct {
					Color string
					Value float64
				}
			}
			Custom struct{ Stacking struct{ Mode string } }
		}
	}
	lines []result
}

// result is a line of a panel. It has a value for each scrape, or NaN.
type result struct {
	name   string
	values []float64
}

// draw draws rows of the dashboard with texts above them. from is the time of the first scrape.
func draw(title, subtitle string, panels []*panel, from time.Time) []byte {
	top, bottom := panels[0].GridPos.Y, 0.0
	for _, d := range panels {
		bottom = max(bottom, d.GridPos.Y+d.GridPos.H)
	}
	p := figure.New(24*column+gap, head+(bottom-top)*line+gap, title)
	p.WriteString(`<rect width="100%" height="100%" style="fill:#f4f5f7"/>` + "\n")
	p.Text(gap+4, 30, figure.Start, "title", title)
	p.Text(gap+4, 50, figure.Start, "subtitle", subtitle)
	for _, d := range panels {
		x, y := gap+d.GridPos.X*column, head+(d.GridPos.Y-top)*line
		w, h := d.GridPos.W*column-gap, d.GridPos.H*line-gap
		if d.Type == "row" {
			p.Text(x+4, y+line-14, figure.Start, "title", d.Title)
			continue
		}
		fmt.Fprintf(p, `<rect x="%g" y="%g" width="%g" height="%g" rx="3" style="fill:#fff;stroke:#d8dade"/>`+"\n", x, y, w, h)
		if d.Type == "stat" {
			d.stat(p, x, y, w)
		} else {
			d.graph(p, x, y, w, h, from)
		}
	}
	return p.End()
}

// stat shows the last values in the colors of their thresholds.
func (d *panel) stat(p *figure.Picture, x, y, w float64) {
	p.Text(x+8, y+18, figure.Start, "label", d.Title)
	for i, l := range d.lines {
		now, color := l.values[len(l.values)-1], ""
		for _, step := range d.FieldConfig.Defaults.Thresholds.Steps {
			if color == "" || now >= step.Value {
				color = colors[step.Color]
			}
		}
		number := func(x, y float64, anchor string, size int) {
			fmt.Fprintf(p, `<text x="%g" y="%g" text-anchor="%s" style="font-size:%dpx;font-weight:600;fill:%s">%s</text>`+"\n", x, y, anchor, size, color, decimal(now))
		}
		if len(d.lines) == 1 {
			number(x+w/2, y+68, figure.Middle, 36)
			p.Text(x+w/2, y+92, figure.Middle, "label", l.name)
		} else {
			below := y + 58 + 30*float64(i)
			number(x+w-12, below, figure.End, 22)
			p.Text(x+8, below, figure.Start, "label", l.name)
		}
	}
}

// graph shows the lines over time. If the panel stacks them, they are on top of each other.
func (d *panel) graph(p *figure.Picture, x, y, w, h float64, from time.Time) {
	stacked, most := d.FieldConfig.Defaults.Custom.Stacking.Mode == "normal", 0.0
	var legend []figure.Entry
	var tops [][]float64
	for i, l := range d.lines {
		style := "fill:none;stroke-width:1.6;stroke:" + figure.Colors[i%len(figure.Colors)]
		if i >= len(figure.Colors) {
			style += ";stroke-dasharray:6 3"
		}
		legend, tops = append(legend, figure.Entry{Name: l.name, Style: style}), append(tops, slices.Clone(l.values))
		for k, v := range l.values {
			if stacked && math.IsNaN(v) {
				tops[i][k] = 0
			}
			if stacked && i > 0 {
				tops[i][k] += tops[i-1][k]
			}
			if tops[i][k] > most { // false for NaN
				most = tops[i][k]
			}
		}
	}
	g := figure.Panel{Name: d.Title, Title: d.Title, Left: x + 62, Top: y + 36, Width: w - 78, X: clock(from), Y: d.amounts(most), Legend: legend, Below: true}
	if more := len(legend) - 8; more > 1 { // Grafana has a scroll bar
		g.Legend = append(legend[:8:8], figure.Entry{Name: fmt.Sprintf("and %d more", more)})
	}
	g.Height = h - 66 - max(figure.LegendLine, g.LegendHeight())
	g.Draw = func(p *figure.Picture, at func(x, y float64) figure.Point) {
		if len(d.lines) == 0 {
			p.Text(g.Left+g.Width/2, g.Top+g.Height/2, figure.Middle, "label", "No data")
		}
		for i, l := range slices.Backward(d.lines) {
			var points, lower []figure.Point
			for k, v := range l.values {
				under := 0.0
				if i > 0 {
					under = tops[i-1][k]
				}
				if !math.IsNaN(v) {
					points, lower = append(points, at(float64(k), tops[i][k])), append(lower, at(float64(k), under))
				}
				if len(points) > 0 && (math.IsNaN(v) || k == len(l.values)-1) { // the end of a section without gaps
					if stacked {
						slices.Reverse(lower)
						p.Path("area", l.name, "stroke:none;fill-opacity:.2;fill:"+figure.Colors[i%len(figure.Colors)], slices.Concat(points, lower), true)
					}
					p.Path("line", l.name, legend[i].Style, points, false)
					points, lower = nil, nil
				}
			}
		}
	}
	g.Write(p)
}

// clock has a tick at each full minute. Its values are scrapes.
func clock(from time.Time) figure.Axis {
	axis := figure.Axis{To: float64(scrapes - 1)}
	for k := range scrapes {
		if at := from.Add(time.Duration(k) * every); at.Truncate(every).Second() == 0 {
			axis.Ticks = append(axis.Ticks, figure.Tick{At: float64(k), Label: at.Format("15:04")})
		}
	}
	return axis
}

// scale is a unit for values of at least this many base units.
type scale struct {
	from, unit float64
	name       string
}

var scales = map[string][]scale{
	"s":           {{4 * 86400, 86400, " d"}, {4 * 3600, 3600, " h"}, {240, 60, " min"}, {1, 1, " s"}, {0, .001, " ms"}},
	"ops":         {{0, 1, "/s"}},
	"percentunit": {{0, .01, " %"}},
	"none":        {{0, 1, ""}},
	"short":       {{0, 1, ""}},
}

// amounts returns the vertical axis for values up to the largest one.
func (d *panel) amounts(greatest float64) figure.Axis {
	fit := scales[d.FieldConfig.Defaults.Unit]
	s := fit[slices.IndexFunc(fit, func(s scale) bool { return greatest >= s.from })]
	ticks := figure.Amounts(greatest/s.unit, func(v float64) string { return decimal(v) + s.name })
	if d.FieldConfig.Defaults.Unit == "none" { // counts
		ticks = slices.DeleteFunc(ticks, func(t figure.Tick) bool { return t.At != math.Trunc(t.At) })
	}
	for i := range ticks {
		ticks[i].At *= s.unit
	}
	return figure.Axis{To: max(ticks[len(ticks)-1].At, 1.06*greatest), Ticks: ticks}
}

func decimal(v float64) string { return strconv.FormatFloat(math.Round(v*1e4)/1e4, 'f', -1, 64) }
