package loadgen

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/perf/scenario"
	"kube-queue.dev/kube-queue/test/perf/trail"
)

// long is a wait that users notice.
const long = time.Second

// Outcome combines the results of a run and the audit log.
type Outcome struct {
	stage  *Run
	counts *trail.Counts
	// released is the time of the response to the controller's last write on each unit, which is
	// the release.
	released []time.Time
}

// NewOutcome returns the outcome of a run. Call Add for each entry of the audit log.
func NewOutcome(stage *Run) *Outcome {
	return &Outcome{stage: stage, counts: trail.NewCounts(), released: make([]time.Time, len(stage.units))}
}

// Add adds an entry of the audit log.
func (o *Outcome) Add(e *trail.Entry) {
	o.counts.Add(e)
	if e.Agent != rig.Controller || e.Resource != "queueunits" || !e.OK() {
		return
	}
	if index, ok := o.stage.Index(e.Name); ok {
		o.released[index] = e.Answered
	}
}

// Totals adds the total figures of a scenario of kind Stream.
func (o *Outcome) Totals(r *report.Report) {
	s, bars := o.stage.scenario, o.stage.scenario.Bars
	first, last := o.stage.units[0].Sent, time.Duration(0)
	late := make(report.Durations, 0, len(o.stage.units))
	for _, unit := range o.stage.units {
		first, last = min(first, unit.Sent), max(last, unit.Ended)
		late = append(late, unit.Sent-unit.Due)
	}
	wall := last - first
	all := r.Section("in all")
	all.Count("units", len(o.stage.units))
	all.Add("wall", wall.Seconds(), "s", atMost(bars.WallSeconds))
	all.Add("rate", float64(len(o.stage.units))/wall.Seconds(), "units/s", nil)
	if capacity := s.Capacity(); capacity > 0 {
		all.Add("floor of wall by work", s.Work()/capacity, "s", nil)
		all.Add("useful work", s.Work()/(capacity*wall.Seconds()), "of capacity", atLeast(bars.UsefulWork))
	}
	counts := o.stage.Counts()
	all.Count("released", counts.Released)
	all.Count("released more than once", o.again())
	all.Count("ended", counts.Ended)
	all.Add("created late, p99", report.Milliseconds(late.Percentile(0.99)), "ms", nil)
	all.Add("created late, max", report.Milliseconds(late.Percentile(1)), "ms", nil)
	all.Count("ends refused and sent again", counts.Conflicts)
	all.Count("requests sent again", counts.Retried)
}

func (o *Outcome) again() int {
	again := 0
	for _, unit := range o.stage.units {
		if unit.Releases > 1 {
			again++
		}
	}
	return again
}

// Waits adds how long units waited, by class, and which part of that was not for lack of quota.
func (o *Outcome) Waits(r *report.Report) {
	classes := make([]report.Durations, len(o.stage.scenario.Classes))
	var all, atOnce, seen report.Durations
	for index, unit := range o.stage.units {
		if unit.Releases == 0 {
			continue
		}
		// The watch event can arrive before the response to the create.
		wait := max(0, unit.Released-unit.Created)
		class := o.stage.arrivals[index].Class
		classes[class] = append(classes[class], wait)
		all = append(all, wait)
		if wait < long {
			atOnce = append(atOnce, wait)
		}
		if at := o.released[index]; !at.IsZero() {
			seen = append(seen, max(0, o.stage.start.Add(unit.Released).Sub(at)))
		}
	}
	waited := func(name string, d report.Durations) {
		section := r.Section(name)
		section.Spread(d)
		section.Count("longer than 1 s", d.LongerThan(long))
	}
	for c, class := range o.stage.scenario.Classes {
		waited("wait from create to release, "+class.Name, classes[c])
	}
	waited("wait from create to release, all", all)
	r.Section("the same of those that waited less than 1 s").Spread(atOnce)
	r.Section("release answered to release seen").Spread(seen)
}

// Ours reports whether a write is by kube-queue and on a unit or an event. Writes on the status of
// queues and trees do not grow with the number of units.
func Ours(k trail.Kind) bool { return ofProgram(k) && !Status(k) }

// Status reports whether a write is by kube-queue and on a Queue or the tree.
func Status(k trail.Kind) bool {
	return ofProgram(k) && (k.Resource == "queues" || k.Resource == "elasticquotatrees")
}

func ofProgram(k trail.Kind) bool { return k.Agent == rig.Controller || k.Agent == rig.Extensions }

// Writes adds the number of writes of each program.
func (o *Outcome) Writes(r *report.Report) {
	units := float64(len(o.stage.units))
	s := r.Section("writes")
	done, refused := o.counts.Sum(Ours)
	s.Add("kube-queue's, of units", float64(done)/units, "a unit", atMost(o.stage.scenario.Bars.WritesPerUnit))
	s.Count("of them refused, beside", refused)
	status, _ := o.counts.Sum(Status)
	s.Count("kube-queue's, of queues and tree", status)
	for _, row := range o.counts.Rows() {
		s.Add(row.Agent+": "+row.What(), float64(row.Done)/units, "a unit", nil)
		if row.Refused > 0 {
			s.Count(row.Agent+": "+row.What()+", refused", row.Refused)
		}
	}
}

// Processes adds the use of each process.
func (o *Outcome) Processes(r *report.Report, use rig.Use) {
	cpu, memory := r.Section("processor time"), r.Section("memory")
	for _, name := range slices.Sorted(maps.Keys(use)) {
		var bar *report.Bar
		if name == rig.Controller {
			bar = atMost(o.stage.scenario.Bars.ControllerCPU)
		}
		cpu.Add(name, report.Milliseconds(use[name].CPU)/float64(len(o.stage.units)), "ms a unit", bar)
		memory.Add(name+", peak", report.MiB(use[name].Peak), "MiB", nil)
		memory.Add(name+", at the end", report.MiB(use[name].Resident), "MiB", nil)
	}
}

func atMost(bar *float64) *report.Bar {
	if bar == nil {
		return nil
	}
	return report.AtMost(*bar)
}

func atLeast(bar *float64) *report.Bar {
	if bar == nil {
		return nil
	}
	return report.AtLeast(*bar)
}

// Progress returns the progress as text.
func (s *Run) Progress() string {
	c := s.Counts()
	parts := []string{fmt.Sprintf("%d of %d created", c.Created, len(s.units))}
	if s.scenario.Kind == scenario.Backlog {
		parts = append(parts, fmt.Sprintf("%d with a reason", c.Reported))
	}
	parts = append(parts, fmt.Sprintf("%d released", c.Released))
	if s.scenario.Kind == scenario.Stream {
		parts = append(parts, fmt.Sprintf("%d ended", c.Ended))
	}
	return strings.Join(parts, ", ")
}
