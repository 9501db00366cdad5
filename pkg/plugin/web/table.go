package web

import (
	"fmt"
	"slices"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/pkg/plugin/render"
)

type table struct {
	*view
	Title, Caption string
	Units          []visibility.UnitSummary
	// Counts are the numbers of units per row; nil if each row is one unit.
	Counts []int32
}

// Positions reports whether any unit has a position.
func (t *table) Positions() bool {
	return slices.ContainsFunc(t.Units, func(u visibility.UnitSummary) bool { return u.Position > 0 })
}

// Starting reports whether any unit has an estimated start.
func (t *table) Starting() bool {
	return slices.ContainsFunc(t.Units, func(u visibility.UnitSummary) bool { return u.Start != nil })
}

// Admitted reports whether any unit was admitted.
func (t *table) Admitted() bool {
	return slices.ContainsFunc(t.Units, func(u visibility.UnitSummary) bool { return u.DequeueTime != nil })
}

// Ends reports whether the end of any unit is known.
func (t *table) Ends() bool {
	return slices.ContainsFunc(t.Units, func(u visibility.UnitSummary) bool { return u.EndsBefore != nil })
}

// Table returns the table of the units or, if similar units share a row, of the groups.
func (d *jobsData) Table(v *view) *table {
	if d.Groups != nil {
		return grouped(v, "", d.Groups)
	}
	return &table{view: v, Caption: "In the order in which they are tried, then those that hold quota", Units: d.Units}
}

func grouped(v *view, title string, groups []visibility.UnitGroup) *table {
	t := &table{view: v, Title: title, Caption: "Each row names the first of several similar jobs"}
	for _, g := range groups {
		g.First.Position = 0 // it would look like the position of the group
		t.Units, t.Counts = append(t.Units, g.First), append(t.Counts, g.Units)
	}
	return t
}

// Holding returns the table of the units that hold most of what the job lacks.
func (d *jobData) Holding(v *view) *table {
	return &table{view: v, Caption: "Largest first", Units: d.Status.HoldingUnits}
}

// Ahead returns the table of the first units ahead of the job.
func (d *jobData) Ahead(v *view) *table {
	return &table{view: v, Caption: "The first ones", Units: d.Status.Ahead}
}

// NoStart returns why the job, which waits, has no estimated start; empty if it has one, or if that is not known.
func (d *jobData) NoStart(v *view) string {
	s := d.Status
	switch {
	case s.Start != nil || !v1alpha1.QueueUnitPhase(s.Phase).Waits() || s.Reason == "":
		return ""
	case !s.Reason.WaitsForQuota():
		return "it waits for something other than quota"
	case s.Position > forecast.MostPredicted:
		return fmt.Sprintf("it is behind position %d in its queue", forecast.MostPredicted)
	case len(v.Warnings) > 0: // only kube-queue-controller estimates, and it has not answered
		return ""
	}
	return "kube-queue-controller has not estimated it yet, or the job must wait for one whose run time is not known yet, or for more than 30 days"
}

// MoreAhead returns how many jobs ahead of the job the table of the first ones leaves out.
func (d *jobData) MoreAhead() int { return render.MoreAhead(d.Status) }

// Pods returns the number of pods of a set: those that the job can start with or, once it holds quota, was admitted with.
func (d *jobData) Pods(set v1alpha1.PodSet) string {
	admitted := lifecycle.AdmittedPods(d.Unit, &set)
	switch {
	case !d.Unit.Status.Phase.HoldsQuota():
		return render.PodRange(&set)
	case admitted < set.Count:
		return fmt.Sprintf("%d of %d admitted", admitted, set.Count)
	}
	return fmt.Sprint(admitted)
}

// Verdict returns the state of the job and the reason.
func (d *jobData) Verdict() string { return render.Verdict(d.Status) }

// Outcomes returns the tables of the result.
func (d *whatIf) Outcomes(v *view) []*table {
	return []*table{grouped(v, "Would start now", d.Result.Started), grouped(v, "Would be evicted", d.Result.Evicted), grouped(v, "Would wait", d.Result.Waiting)}
}
