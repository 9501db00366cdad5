// Package plot draws a report as an SVG image.
//
// The image has one panel per policy with the use of the tracked resource over time, stacked
// by tenant, and the max of the root; one panel with the waiting jobs; and one with the
// distribution of waits by policy, or by tenant if there is only one policy. All panels over
// time share the same axis.
//
// Invariants. The same report gives the same bytes. No point is outside of the frame of its
// panel. The colors are safe for color-blind readers (palette of Okabe and Ito), and the
// lines of policies also differ by their dashes.
package plot

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/simulator/report"
)

// Colors of tenants, and the color of all other tenants together.
var (
	colors     = []string{"#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7"}
	otherColor = "#B0B0B0"
)

// policyStyles are the styles of the lines of policies.
var policyStyles = []string{
	"fill:none;stroke:#0072B2;stroke-width:1.8",
	"fill:none;stroke:#D55E00;stroke-width:1.8;stroke-dasharray:7 3",
	"fill:none;stroke:#009E73;stroke-width:1.8;stroke-dasharray:2 2",
}

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

// Draw returns the image of a paper that has at least one report.
func Draw(paper *report.Paper) []byte {
	d := newDrawing(paper)
	title := fmt.Sprintf("%s: %s jobs of %s tenants", filepath.Base(paper.Trace.File), report.Count(int64(paper.Trace.Jobs)), report.Count(int64(paper.Trace.Tenants)))
	return compose(title, "Quota tree "+paper.Tree.Source, d.panels())
}

// Use are the texts of an image that shows only the use over time.
type Use struct {
	Title, Subtitle string
	// Headings are the headings of the panels, one for each report.
	Headings []string
	// Unit is the title of the vertical axis, Limit the name of the max of the root.
	Unit, Limit string
}

// DrawUse returns an image of a paper that has at least one report, with the use over time
// of each report.
func DrawUse(paper *report.Paper, texts Use) []byte {
	d := newDrawing(paper)
	var panels []*panel
	for i, r := range paper.Reports {
		panels = append(panels, d.usePanel(r, texts.Headings[i], texts.Unit, texts.Limit))
	}
	return compose(texts.Title, texts.Subtitle, panels)
}

// compose puts the panels below each other.
func compose(title, subtitle string, panels []*panel) []byte {
	top := 62.0
	for _, panel := range panels {
		panel.top = top + panelTop
		top = panel.top + panel.height + panelBottom
	}
	p := &picture{}
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%s" viewBox="0 0 %d %s" role="img">`+"\n",
		pictureWidth, number(top), pictureWidth, number(top))
	fmt.Fprintf(p, "<title>%s</title>\n", escape(title))
	p.WriteString(style)
	p.WriteString(`<rect width="100%" height="100%" style="fill:#fff"/>` + "\n")
	p.text(panelLeft, 30, start, "title", shorten(title, 90))
	p.text(panelLeft, 50, start, "subtitle", shorten(subtitle, 130))
	for _, panel := range panels {
		panel.write(p)
	}
	p.WriteString("</svg>\n")
	return p.Bytes()
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
		if len(d.tenants) == len(colors) {
			d.others = len(groups) - len(colors)
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

func (d *drawing) panels() []*panel {
	var panels []*panel
	for _, r := range d.Reports {
		panels = append(panels, d.usePanel(r, "Use by tenant, policy "+r.Name, report.Unit(r.Resource), "max of the root"))
	}
	return append(panels, d.waitingPanel(), d.distributionPanel())
}

func (d *drawing) timeAxis() axis {
	ticks, unit := times(d.end)
	title := unit + " from the first submission"
	if d.Trace.Start != nil {
		title += ", " + d.Trace.Start.Format("2006-01-02 15:04")
	}
	return axis{to: float64(d.end), ticks: ticks, title: title}
}

// shorten cuts the beginning of a text that does not fit.
func shorten(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return "…" + string(runes[len(runes)-most+1:])
	}
	return text
}
