package loadgen

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

// long is a wait that users notice.
const long = time.Second

// Outcome combines the results of a run and the audit log.
type Outcome struct {
	run    *Run
	counts rig.Counts
	// released is the time of the response to the controller's last write on each unit, which is
	// the release.
	released []time.Time
}

// NewOutcome returns the outcome of a run. Call Add for each entry of the audit log.
func NewOutcome(run *Run) *Outcome {
	return &Outcome{run: run, counts: rig.Counts{}, released: make([]time.Time, len(run.units))}
}

// Add adds an entry of the audit log.
func (o *Outcome) Add(e *rig.Entry) {
	o.counts.Add(e)
	if e.Agent != rig.Controller || e.Resource != "queueunits" || !e.OK {
		return
	}
	if index, ok := o.run.Index(e.Name); ok {
		o.released[index] = e.Answered
	}
}

// Totals adds the total figures of a scenario of kind Stream.
func (o *Outcome) Totals(r *report.Report) {
	s, bars := o.run.scenario, o.run.scenario.Bars
	first, last := o.run.units[0].Sent, time.Duration(0)
	late := make(report.Durations, 0, len(o.run.units))
	for _, unit := range o.run.units {
		first, last = min(first, unit.Sent), max(last, unit.Ended)
		late = append(late, unit.Sent-unit.Due)
	}
	wall := last - first
	all := r.Section("in all")
	all.Count("units", len(o.run.units))
	all.Add("wall", wall.Seconds(), "s", atMost(bars.WallSeconds))
	all.Add("rate", float64(len(o.run.units))/wall.Seconds(), "units/s", nil)
	if capacity := s.Capacity(); capacity > 0 {
		all.Add("floor of wall by work", s.Work()/capacity, "s", nil)
		all.Add("useful work", s.Work()/(capacity*wall.Seconds()), "of capacity", atLeast(bars.UsefulWork))
	}
	counts := o.run.Counts()
	all.Count("released", counts.Released)
	all.Count("released more than once", o.run.again())
	all.Count("ended", counts.Ended)
	all.Add("created late, p99", report.Milliseconds(late.Percentile(0.99)), "ms", nil)
	all.Add("created late, max", report.Milliseconds(late.Percentile(1)), "ms", nil)
	all.Count("ends refused and sent again", counts.Conflicts)
	all.Count("requests sent again", counts.Retried)
}

// again returns how many units were released more than once.
func (s *Run) again() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := 0
	for _, unit := range s.units {
		if unit.Releases > 1 {
			again++
		}
	}
	return again
}

// Check returns an error for results that are wrong independent of the figures.
func (o *Outcome) Check() error {
	if again := o.run.again(); again > 0 {
		return fmt.Errorf("%d units were released more than once: this is a bug in kube-queue", again)
	}
	if done, _ := o.counts.Sum(rig.Kind.ByKubeQueue); done == 0 {
		return errors.New("the audit log contains no write of kube-queue, so the figures would be meaningless")
	}
	return nil
}

// Waits adds how long units waited, by class, and which part of that was not for lack of quota.
func (o *Outcome) Waits(r *report.Report) {
	classes := make([]report.Durations, len(o.run.scenario.Classes))
	var all, atOnce, seen report.Durations
	for index, unit := range o.run.units {
		if unit.Releases == 0 {
			continue
		}
		// The watch event can arrive before the response to the create.
		wait := max(0, unit.Released-unit.Created)
		class := o.run.arrivals[index].Class
		classes[class] = append(classes[class], wait)
		all = append(all, wait)
		if wait < long {
			atOnce = append(atOnce, wait)
		}
		if at := o.released[index]; !at.IsZero() {
			seen = append(seen, max(0, o.run.start.Add(unit.Released).Sub(at)))
		}
	}
	waited := func(name string, d report.Durations) {
		section := r.Section(name)
		section.Count("measured", len(d))
		section.Spread(d, nil, nil)
		section.Count("longer than 1 s", d.LongerThan(long))
	}
	for c, class := range o.run.scenario.Classes {
		waited("wait from create to release, "+class.Name, classes[c])
	}
	waited("wait from create to release, all", all)
	waited("the same of those that waited less than 1 s", atOnce)
	waited("release answered to release seen", seen)
}

// Writes adds the number of writes of each program.
func (o *Outcome) Writes(r *report.Report) {
	units := float64(len(o.run.units))
	s := r.Section("writes")
	done, refused := o.counts.Sum(rig.Kind.ByKubeQueue)
	s.Add("kube-queue's, of units", float64(done)/units, "a unit", atMost(o.run.scenario.Bars.WritesPerUnit))
	s.Count("of them refused, beside", refused)
	status, _ := o.counts.Sum(rig.Kind.Shared)
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
			bar = atMost(o.run.scenario.Bars.ControllerCPU)
		}
		cpu.Add(name, report.Milliseconds(use[name].CPU)/float64(len(o.run.units)), "ms a unit", bar)
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
	return fmt.Sprintf("%d of %d units created, %d with a reason, %d released, %d ended", c.Created, len(s.units), c.Reported, c.Released, c.Ended)
}
