package plot

import (
	"fmt"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/simulator/plot/figure"
	"kube-queue.dev/kube-queue/pkg/simulator/report"
)

// usePanel stacks the use of tenants, the largest at the bottom.
func (d *drawing) usePanel(r *report.Report) *figure.Panel {
	layers := d.layers(r)
	greatest := r.Series.Limit
	for _, l := range layers {
		greatest = max(greatest, slices.Max(l.upper))
	}
	// Leave some space above the limit line.
	ticks := figure.Amounts(greatest, report.Amount)
	y := figure.Axis{To: max(greatest*1.06, ticks[len(ticks)-1].At), Ticks: ticks, Title: report.Unit(r.Resource)}
	if last := ticks[len(ticks)-1].At; last > greatest*1.1 {
		y.To, y.Ticks = greatest*1.1, ticks[:len(ticks)-1]
	}
	use := &figure.Panel{Name: "use " + r.Name, Title: "Use by tenant, policy " + r.Name, Height: 190, X: d.timeAxis(), Y: y}
	for _, l := range slices.Backward(layers) {
		use.Legend = append(use.Legend, figure.Entry{Name: shorten(l.name, 22), Style: "fill:" + l.color, Area: true})
	}
	if r.Series.Limit > 0 {
		use.Legend = append([]figure.Entry{{Name: "max of the root", Style: "stroke:#111;stroke-dasharray:6 4"}}, use.Legend...)
	}
	use.Draw = func(p *figure.Picture, at func(x, y float64) figure.Point) {
		for _, l := range layers {
			points := stairs(r.Series, l.upper, at)
			back := stairs(r.Series, l.lower, at)
			slices.Reverse(back)
			p.Path("area", l.name, "stroke:none;fill:"+l.color, append(points, back...), true)
		}
		if r.Series.Limit > 0 {
			left, right := at(0, r.Series.Limit), at(float64(d.end), r.Series.Limit)
			p.Line(left.X, left.Y, right.X, right.Y, "limit")
		}
	}
	return use
}

// layer is a layer of the stack: one tenant, or all tenants without a color.
type layer struct {
	name, color  string
	lower, upper []float64
}

func (d *drawing) layers(r *report.Report) []layer {
	var layers []layer
	below := make([]float64, len(r.Series.Waiting))
	add := func(name, color string, of func(k int) float64) {
		l := layer{name: name, color: color, lower: below, upper: slices.Clone(below)}
		for k := range l.upper {
			l.upper[k] += of(k)
		}
		layers, below = append(layers, l), l.upper
	}
	for i, tenant := range d.tenants {
		add(tenant, figure.Colors[i], func(k int) float64 { return r.Series.Use[tenant][k] })
	}
	if d.others > 0 {
		add(d.othersName(), figure.OtherColor, func(k int) float64 {
			sum := 0.0
			for _, g := range r.Tenants {
				if !slices.Contains(d.tenants, g.Name) {
					sum += r.Series.Use[g.Name][k]
				}
			}
			return sum
		})
	}
	return layers
}

// stairs returns the points of a step function: each value applies to its complete interval.
func stairs(s report.Series, values []float64, at func(x, y float64) figure.Point) []figure.Point {
	var points []figure.Point
	for k, v := range values {
		points = append(points, at(float64(s.Interval)*float64(k), v), at(float64(s.Interval)*float64(k+1), v))
	}
	return points
}

func (d *drawing) waitingPanel() *figure.Panel {
	greatest := 0.0
	for _, r := range d.Reports {
		greatest = max(greatest, slices.Max(r.Series.Waiting))
	}
	ticks := figure.Amounts(greatest, report.Amount)
	waiting := &figure.Panel{Name: "waiting", Title: "Waiting jobs", Height: 150, X: d.timeAxis(),
		Y: figure.Axis{To: ticks[len(ticks)-1].At, Ticks: ticks, Title: "jobs"}, Legend: d.policies()}
	waiting.Draw = func(p *figure.Picture, at func(x, y float64) figure.Point) {
		for i, r := range d.Reports {
			p.Path("line", r.Name, policyStyles[i%len(policyStyles)], stairs(r.Series, r.Series.Waiting, at), false)
		}
	}
	return waiting
}

func (d *drawing) policies() []figure.Entry {
	var entries []figure.Entry
	for i, r := range d.Reports {
		entries = append(entries, figure.Entry{Name: shorten(r.Name, 22), Style: policyStyles[i%len(policyStyles)]})
	}
	return entries
}

// distributionPanel shows, for each wait, the fraction of jobs that waited no longer.
func (d *drawing) distributionPanel() *figure.Panel {
	to := 10 * report.Seconds(time.Second)
	for _, r := range d.Reports {
		to = max(to, r.DistributionAt[len(r.DistributionAt)-1])
	}
	var percents []figure.Tick
	for _, v := range []float64{0, 20, 40, 60, 80, 100} {
		percents = append(percents, figure.Tick{At: v, Label: fmt.Sprintf("%.0f %%", v)})
	}
	var reached []figure.Tick
	for _, t := range figure.Waits {
		if t.At <= float64(to) {
			reached = append(reached, t)
		}
	}
	spread := &figure.Panel{Name: "distribution", Title: "Distribution of waits", Height: 190,
		X: figure.Axis{From: float64(time.Second), To: float64(to), Log: true, Ticks: reached, Title: "wait from submission to release (logarithmic)"},
		Y: figure.Axis{To: 100, Ticks: percents, Title: "released jobs"}}
	lines := d.distributions()
	for _, l := range lines {
		spread.Legend = append(spread.Legend, l.Entry)
	}
	spread.Draw = func(p *figure.Picture, at func(x, y float64) figure.Point) {
		for _, l := range lines {
			var points []figure.Point
			for k, part := range l.parts {
				if l.at[k] >= report.Seconds(time.Second) {
					points = append(points, at(float64(l.at[k]), 100*part))
				}
			}
			p.Path("line", l.full, l.Style, points, false)
		}
	}
	return spread
}

// distributed is a line of the distribution panel.
type distributed struct {
	figure.Entry
	full  string
	at    []report.Seconds
	parts []float64
}

func (d *drawing) distributions() []distributed {
	var lines []distributed
	if len(d.Reports) > 1 {
		for i, e := range d.policies() {
			r := d.Reports[i]
			lines = append(lines, distributed{e, r.Name, r.DistributionAt, r.All.Distribution})
		}
		return lines
	}
	r := d.Reports[0]
	for i, tenant := range d.tenants {
		at := slices.IndexFunc(r.Tenants, func(g report.Group) bool { return g.Name == tenant })
		if g := r.Tenants[at]; g.Jobs > g.Never {
			lines = append(lines, distributed{figure.Entry{Name: shorten(tenant, 22), Style: "fill:none;stroke-width:1.4;stroke:" + figure.Colors[i]}, tenant, r.DistributionAt, g.Distribution})
		}
	}
	all := figure.Entry{Name: "all tenants", Style: "fill:none;stroke:#111;stroke-width:2.4"}
	return append(lines, distributed{all, all.Name, r.DistributionAt, r.All.Distribution})
}
