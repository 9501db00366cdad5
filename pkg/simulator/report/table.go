package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// width is the width of the output in characters.
const width = 100

// Table writes the paper as tables.
func (p *Paper) Table(to io.Writer) error {
	w := &bytes.Buffer{}
	p.heading(w)
	p.overall(w)
	if p.Preemption != nil {
		p.evictionsTable(w)
	}
	p.useTable(w)
	p.fairnessTable(w)
	for _, part := range []struct {
		title string
		of    func(*Report) []Group
	}{
		{"By tenant", func(r *Report) []Group { return r.Tenants }},
		{"By size, in " + Unit(p.Reports[0].Resource), func(r *Report) []Group { return r.Sizes }},
	} {
		fmt.Fprintf(w, "\n%s\n", part.title)
		if len(p.Reports) == 1 {
			p.oneReport(w, part.of(p.Reports[0]))
		} else {
			sideBySide(w, p.Reports, part.of)
		}
	}
	p.neverText(w)
	p.footnotes(w)
	_, err := w.WriteTo(to)
	return err
}

func (p *Paper) heading(w io.Writer) {
	from := ""
	if p.Trace.Start != nil {
		from = " from " + p.Trace.Start.Format("2006-01-02 15:04")
	}
	wrap(w, "Trace    ", "         ", fmt.Sprintf("%s: %s of %s, submitted%s within %s; %s %s", p.Trace.File, plural(p.Trace.Jobs, "job"),
		plural(p.Trace.Tenants, "tenant"), from, p.Trace.Span, Amount(p.Reports[0].Demand), unitHours(p.Reports[0].Resource)), width)
	for _, s := range slices.Concat(p.Trace.Skipped, p.Trace.Renamed) {
		wrap(w, "         ", "         ", s, width)
	}
	text := p.Tree.Source + "; max of the root: " + strings.Join(p.Tree.Max, ", ")
	if len(p.Tree.Max) == 0 {
		text = p.Tree.Source + "; the root has no max"
	}
	if p.Tree.OversellRate != "1" {
		text += "; every max is multiplied by " + p.Tree.OversellRate
	}
	if p.Tree.PauseBorrowing {
		text += "; borrowing is paused while a job waits for guaranteed quota"
	}
	wrap(w, "Tree     ", "         ", text, width)
	if p.Preemption != nil {
		wrap(w, "Evicted  ", "         ", p.Preemption.String(), width)
	}
	for _, warning := range p.Reports[0].Warnings {
		wrap(w, "Warning  ", "         ", warning, width)
	}
}

var waitTitles = []string{"MEAN", "P50", "P90", "P99", "MAX", "SLOWDOWN"}

func (g *Group) waits() []string {
	if g.Jobs == g.Never {
		return []string{"-", "-", "-", "-", "-", "-"}
	}
	return []string{g.Mean.String(), g.P50.String(), g.P90.String(), g.P99.String(), g.Max.String(), digits(g.Slowdown)}
}

func (p *Paper) overall(w io.Writer) {
	until := "release"
	if p.Preemption != nil {
		until = "first release"
	}
	fmt.Fprintf(w, "\nWaits, from submission to %s\n", until)
	c := &columns{}
	c.row(slices.Concat([]string{"POLICY", "RELEASED", "NEVER"}, waitTitles)...)
	for _, r := range p.Reports {
		c.row(slices.Concat([]string{r.Name, Count(int64(r.All.Jobs - r.All.Never)), Count(int64(r.All.Never))}, r.All.waits())...)
	}
	c.write(w, "  ")
}

func (p *Paper) evictionsTable(w io.Writer) {
	fmt.Fprintf(w, "\nEvictions, with lost %s\n", unitHours(p.Reports[0].Resource))
	c := &columns{}
	c.row("POLICY", "EVICTIONS", "RECLAIMED", "PREEMPTED", "JOBS", "HOURS LOST", "PART LOST", "WAIT AFTER", "TOTAL WAIT")
	for _, r := range p.Reports {
		e := r.All.Evictions
		c.row(r.Name, Count(int64(e.Count)), Count(int64(e.Reclaimed)), Count(int64(e.Preempted)), Count(int64(e.Jobs)),
			Amount(e.Lost), percent(e.LostPart), e.Later.String(), e.Total.String())
	}
	c.write(w, "  ")
}

func (p *Paper) useTable(w io.Writer) {
	fmt.Fprintln(w, "\nUse of the max of the root, from the first submission")
	c := &columns{}
	c.row("POLICY", "RESOURCE", "MAX", "HOURS USED", "UNTIL LAST END", "UNTIL LAST SUBMISSION", "MAKESPAN")
	for _, r := range p.Reports {
		for _, u := range r.Use {
			c.row(r.Name, u.Resource, u.Max, Amount(u.Hours), percent(u.Part), percent(u.PartEarly), r.Makespan.String())
		}
		if len(r.Use) == 0 {
			c.row(r.Name, "-", "-", "-", "-", "-", r.Makespan.String())
		}
	}
	c.write(w, "  ")
}

func (p *Paper) fairnessTable(w io.Writer) {
	fmt.Fprintln(w, "\nFairness between tenants")
	c := &columns{}
	c.row("POLICY", "JAIN'S INDEX", "WORST TENANT", "ITS MEAN WAIT", "SHORTFALL OF MIN", "WORST QUOTA")
	for _, r := range p.Reports {
		f := r.Fairness
		cells := []string{r.Name, "-", "-", "-"}
		if f.Jain != nil {
			cells = []string{r.Name, digits(*f.Jain), f.WorstTenant, f.WorstMean.String()}
		}
		if len(f.Shortfall) == 0 {
			cells = append(cells, "no min", "-")
		}
		for i, s := range f.Shortfall {
			if i > 0 {
				cells = []string{"", "", "", ""}
			}
			most := "-"
			if s.Hours > 0 {
				most = s.Worst
			}
			c.row(append(cells, Amount(s.Hours)+" "+unitHours(s.Resource), most)...)
		}
		if len(f.Shortfall) == 0 {
			c.row(cells...)
		}
	}
	c.write(w, "  ")
}

func (p *Paper) oneReport(w io.Writer, groups []Group) {
	c := &columns{}
	titles := slices.Concat([]string{"", "JOBS", "NEVER", "HOURS"}, waitTitles)
	if p.Preemption != nil {
		titles = append(titles, "EVICTIONS", "HOURS LOST")
	}
	c.row(titles...)
	for _, g := range groups {
		cells := slices.Concat([]string{g.Name, Count(int64(g.Jobs)), Count(int64(g.Never)), Amount(g.Hours)}, g.waits())
		if e := g.Evictions; p.Preemption != nil {
			cells = append(cells, Count(int64(e.Count)), Amount(e.Lost))
		}
		c.row(cells...)
	}
	c.write(w, "  ")
}

func sideBySide(w io.Writer, reports []*Report, of func(*Report) []Group) {
	c := &columns{}
	names, titles := []string{"", ""}, []string{"", "JOBS"}
	for _, r := range reports {
		names = append(names, "", r.Name)
		titles = append(titles, "MEAN", "P90")
	}
	c.row(names...)
	c.row(titles...)
	for i, g := range of(reports[0]) {
		cells := []string{g.Name, Count(int64(g.Jobs))}
		for _, r := range reports {
			waits := of(r)[i].waits()
			cells = append(cells, waits[0], waits[2])
		}
		c.row(cells...)
	}
	c.write(w, "  ")
}

func (p *Paper) neverText(w io.Writer) {
	for _, r := range p.Reports {
		for _, n := range r.Never {
			fmt.Fprintln(w)
			wrap(w, "", "  ", fmt.Sprintf("Policy %s: %s never released (%s). Reason: %s. Message of job %s: %q. To fix it, %s.",
				r.Name, plural(n.Jobs, "job was", "jobs were"), plural(len(n.Tenants), "tenant")+": "+some(n.Tenants), n.Reason, n.Job, n.Message, n.Advice), width)
		}
	}
}

// some returns the first names and the number of the others.
func some(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func (p *Paper) footnotes(w io.Writer) {
	fmt.Fprintln(w)
	slowdown, evictions := "(wait + run) / run", ""
	if p.Preemption != nil {
		slowdown = "the time from submission to end, divided by the run time"
		evictions = "HOURS LOST are those of runs that were repeated after an eviction, PART LOST is their part of all hours used. " +
			"WAIT AFTER is the mean time that evicted jobs waited after their evictions, TOTAL WAIT the mean of all waits of all jobs. "
	}
	for _, text := range []string{
		"Waits are in virtual time and cover released jobs only; 90 % of the jobs waited at most P90. " +
			"SLOWDOWN is the mean of " + slowdown + ", at least 1; runs below 10 s count as 10 s. " + evictions +
			"SHORTFALL OF MIN is the unused part of the min of quotas while jobs of these quotas waited that fit in it. " +
			"Jain's index is 1 if the mean slowdowns of all tenants are equal.",
		"Not simulated: nodes (fragmentation and placement); the time that schedulers, operators and image pulls take; " +
			"failing jobs; users who adapt their submissions. Real waits are longer. " +
			"Maximum waits depend on details: compare means and P90.",
	} {
		wrap(w, "", "", text, width)
	}
}
