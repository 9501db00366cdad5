// Package plot draws a report as an SVG image.
//
// The image has one panel per policy with the use of the tracked resource over time, stacked
// by tenant, and the max of the root; one panel with the waiting jobs; and one with the
// distribution of waits by policy, or by tenant if there is only one policy. All panels over
// time share the same axis.
//
// Invariants. The same report gives the same bytes. No point is outside of the frame of its
// panel. The lines of policies differ by their colors and by their dashes.
package plot

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/simulator/plot/figure"
	"kube-queue.dev/kube-queue/pkg/simulator/report"
)

var policyStyles = []string{
	"fill:none;stroke:#0072B2;stroke-width:1.8",
	"fill:none;stroke:#D55E00;stroke-width:1.8;stroke-dasharray:7 3",
	"fill:none;stroke:#009E73;stroke-width:1.8;stroke-dasharray:2 2",
	"fill:none;stroke:#CC79A7;stroke-width:1.8;stroke-dasharray:9 3 2 3",
}

// Lengths in pixels.
const (
	pictureWidth = 1000
	panelLeft    = 74
	panelWidth   = 730
	// panelTop is the space above a panel for its title, panelBottom the space below for
	// the labels of its axis.
	panelTop, panelBottom = 30, 44
)

// Draw returns the image of a paper that has at least one report.
func Draw(paper *report.Paper) []byte {
	d := newDrawing(paper)
	title := fmt.Sprintf("%s: %s jobs of %s tenants", filepath.Base(paper.Trace.File), report.Count(int64(paper.Trace.Jobs)), report.Count(int64(paper.Trace.Tenants)))
	return compose(title, "Quota tree "+paper.Tree.Source, d.panels())
}

// compose stacks the panels vertically.
func compose(title, subtitle string, panels []*figure.Panel) []byte {
	top := 62.0
	for _, panel := range panels {
		panel.Left, panel.Width, panel.Top = panelLeft, panelWidth, top+panelTop
		top = panel.Top + panel.Height + panelBottom
	}
	p := figure.New(pictureWidth, top, title)
	p.Text(panelLeft, 30, figure.Start, "title", shorten(title, 90))
	p.Text(panelLeft, 50, figure.Start, "subtitle", shorten(subtitle, 130))
	for _, panel := range panels {
		panel.Write(p)
	}
	return p.End()
}

// drawing contains what the panels share.
type drawing struct {
	*report.Paper
	end time.Duration
	// tenants are those with a color, sorted by resource-hours, the largest first.
	tenants []string
	others  int
}

func newDrawing(paper *report.Paper) *drawing {
	d := &drawing{Paper: paper}
	for _, r := range paper.Reports {
		d.end = max(d.end, time.Duration(r.Series.Interval)*time.Duration(len(r.Series.Waiting)))
	}
	d.chooseTenants()
	return d
}

func (d *drawing) chooseTenants() {
	groups := slices.Clone(d.Reports[0].Tenants)
	slices.SortStableFunc(groups, func(a, b report.Group) int { return cmp.Compare(b.Hours, a.Hours) })
	for _, g := range groups {
		// All further tenants share one color.
		if len(d.tenants) == len(figure.Colors) {
			d.others = len(groups) - len(figure.Colors)
			break
		}
		d.tenants = append(d.tenants, g.Name)
	}
}

func (d *drawing) othersName() string {
	if d.others == 1 {
		return "1 other tenant"
	}
	return fmt.Sprintf("%d other tenants", d.others)
}

func (d *drawing) panels() []*figure.Panel {
	var panels []*figure.Panel
	for _, r := range d.Reports {
		panels = append(panels, d.usePanel(r))
	}
	return append(panels, d.waitingPanel(), d.distributionPanel())
}

func (d *drawing) timeAxis() figure.Axis {
	ticks, unit := figure.Times(d.end)
	title := unit + " from the first submission"
	if d.Trace.Start != nil {
		title += ", " + d.Trace.Start.Format("2006-01-02 15:04")
	}
	return figure.Axis{To: float64(d.end), Ticks: ticks, Title: title}
}

// shorten cuts the beginning of a text that does not fit.
func shorten(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return "…" + string(runes[len(runes)-most+1:])
	}
	return text
}
