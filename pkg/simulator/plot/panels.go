package plot

import (
	"fmt"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/simulator/report"
)

// usePanel stacks the use of tenants, the largest at the bottom. limit is the name of the max
// of the root.
func (d *drawing) usePanel(r *report.Report, heading, unit, limit string) *panel {
	layers := d.layers(r)
	greatest := r.Series.Limit
	for _, l := range layers {
		greatest = max(greatest, slices.Max(l.upper))
	}
	// Leave some space above the line of the limit.
	ticks := amounts(greatest)
	y := axis{to: max(greatest*1.06, ticks[len(ticks)-1].at), ticks: ticks, title: unit}
	if last := ticks[len(ticks)-1].at; last > greatest*1.1 {
		y.to, y.ticks = greatest*1.1, ticks[:len(ticks)-1]
	}
	use := &panel{name: "use " + r.Name, title: heading, height: 190, x: d.timeAxis(), y: y}
	for _, l := range slices.Backward(layers) {
		use.legend = append(use.legend, entry{name: shorten(l.name, 22), style: "fill:" + l.color, area: true})
	}
	if r.Series.Limit > 0 {
		use.legend = append([]entry{{name: limit, style: "stroke:#111;stroke-dasharray:6 4"}}, use.legend...)
	}
	use.draw = func(p *picture, at func(x, y float64) point) {
		for _, l := range layers {
			points := stairs(r.Series, l.upper, at)
			back := stairs(r.Series, l.lower, at)
			slices.Reverse(back)
			p.path("area", l.name, "stroke:none;fill:"+l.color, append(points, back...), true)
		}
		if r.Series.Limit > 0 {
			left, right := at(0, r.Series.Limit), at(float64(d.end), r.Series.Limit)
			p.line(left.x, left.y, right.x, right.y, "limit")
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
		add(tenant, colors[i], func(k int) float64 { return r.Series.Use[tenant][k] })
	}
	if d.others > 0 {
		add(d.othersName(), otherColor, func(k int) float64 {
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
func stairs(s report.Series, values []float64, at func(x, y float64) point) []point {
	var points []point
	for k, v := range values {
		points = append(points, at(float64(s.Interval)*float64(k), v), at(float64(s.Interval)*float64(k+1), v))
	}
	return points
}

func (d *drawing) waitingPanel() *panel {
	greatest := 0.0
	for _, r := range d.Reports {
		greatest = max(greatest, slices.Max(r.Series.Waiting))
	}
	ticks := amounts(greatest)
	waiting := &panel{name: "waiting", title: "Waiting jobs", height: 150, x: d.timeAxis(),
		y: axis{to: ticks[len(ticks)-1].at, ticks: ticks, title: "jobs"}, legend: d.policies()}
	waiting.draw = func(p *picture, at func(x, y float64) point) {
		for i, r := range d.Reports {
			p.path("line", r.Name, policyStyles[i%len(policyStyles)], stairs(r.Series, r.Series.Waiting, at), false)
		}
	}
	return waiting
}

func (d *drawing) policies() []entry {
	var entries []entry
	for i, r := range d.Reports {
		entries = append(entries, entry{name: shorten(r.Name, 22), style: policyStyles[i%len(policyStyles)]})
	}
	return entries
}

// distributionPanel shows for each wait the part of the jobs that waited at most as long.
func (d *drawing) distributionPanel() *panel {
	to := 10 * report.Seconds(time.Second)
	for _, r := range d.Reports {
		to = max(to, r.DistributionAt[len(r.DistributionAt)-1])
	}
	var percents []tick
	for _, v := range []float64{0, 20, 40, 60, 80, 100} {
		percents = append(percents, tick{v, fmt.Sprintf("%.0f %%", v)})
	}
	var reached []tick
	for _, t := range waits {
		if t.at <= float64(to) {
			reached = append(reached, t)
		}
	}
	spread := &panel{name: "distribution", title: "Distribution of waits", height: 190,
		x: axis{from: float64(time.Second), to: float64(to), log: true, ticks: reached, title: "wait from submission to release (logarithmic)"},
		y: axis{to: 100, ticks: percents, title: "released jobs"}}
	lines := d.distributions()
	for _, l := range lines {
		spread.legend = append(spread.legend, l.entry)
	}
	spread.draw = func(p *picture, at func(x, y float64) point) {
		for _, l := range lines {
			var points []point
			for k, part := range l.parts {
				if l.at[k] >= report.Seconds(time.Second) {
					points = append(points, at(float64(l.at[k]), 100*part))
				}
			}
			p.path("line", l.full, l.style, points, false)
		}
	}
	return spread
}

// distributed is a line of the distribution panel.
type distributed struct {
	entry
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
			lines = append(lines, distributed{entry{name: shorten(tenant, 22), style: "fill:none;stroke-width:1.4;stroke:" + colors[i]}, tenant, r.DistributionAt, g.Distribution})
		}
	}
	all := entry{name: "all tenants", style: "fill:none;stroke:#111;stroke-width:2.4"}
	return append(lines, distributed{all, all.name, r.DistributionAt, r.All.Distribution})
}
