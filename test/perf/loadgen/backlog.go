package loadgen

import (
	"context"
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/test/perf/pace"
	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

// Environment changes the quota and the controller during a backlog.
type Environment interface {
	// Room applies a tree with quota for this many units in each leaf.
	Room(ctx context.Context, units int) error
	// Restart kills the controller, calls meanwhile and starts the controller without waiting until
	// it is ready. It returns the time of the start.
	Restart(ctx context.Context, meanwhile func(context.Context) error) (time.Time, error)
	Use() (rig.Use, error)
	// Moment is called at the start of a part of the scenario: "waiting", "releasing", "over".
	Moment(ctx context.Context, name string) error
}

// RunBacklog runs a scenario of kind Backlog and adds its figures: all units are created and wait,
// quota is given to some of them, and more while the controller is down.
func (s *Run) RunBacklog(ctx context.Context, environment Environment, figures *report.Report) error {
	before, err := environment.Use()
	if err != nil {
		return err
	}
	return s.Play(ctx, func(ctx context.Context) error {
		if err := s.fill(ctx, environment, before, figures.Section("waiting")); err != nil {
			return err
		}
		if err := s.release(ctx, environment, figures.Section("room is made")); err != nil {
			return err
		}
		return s.restart(ctx, environment, figures.Section("controller is killed, room is made and it starts"))
	})
}

// fill waits until all units wait with a reason and there are no more writes, and then measures
// what is used while nothing happens.
func (s *Run) fill(ctx context.Context, environment Environment, before rig.Use, figures *report.Section) error {
	plan := s.scenario.Backlog
	reported := func(c Counts) bool { return c.Created == len(s.units) && c.Reported == len(s.units) }
	if err := s.reach(ctx, "every unit has a reason", reported); err != nil {
		return err
	}
	took := s.Counts().LastEvent
	if err := s.Until(ctx, func(c Counts) bool { return s.Elapsed()-c.LastEvent >= plan.Settle.Duration }); err != nil {
		return err
	}
	if c := s.Counts(); c.Released > 0 {
		return fmt.Errorf("%d units were released without quota", c.Released)
	}
	waiting, err := environment.Use()
	if err != nil {
		return err
	}
	if err := pace.Pass(ctx, plan.Rest.Duration); err != nil {
		return err
	}
	began := time.Now()
	rested, err := environment.Use()
	if err != nil {
		return err
	}
	if err := pace.Pass(ctx, plan.Idle.Duration); err != nil {
		return err
	}
	idle, err := environment.Use()
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	figures.Count("units", len(s.units))
	figures.Add("created, each with a reason, after", took.Seconds(), "s", nil)
	controller := waiting.Since(before)[rig.Controller]
	figures.Add("controller, processor time", report.Milliseconds(controller.CPU)/float64(len(s.units)), "ms a unit", nil)
	figures.Add("controller, memory", report.MiB(controller.Resident), "MiB", atMost(s.scenario.Bars.ControllerMiB))
	figures.Add("controller, peak memory", report.MiB(controller.Peak), "MiB", nil)
	figures.Add(rig.Controller+", idle", idle.Since(rested)[rig.Controller].CPU.Seconds()/seconds, "cores", atMost(s.scenario.Bars.IdleCPU))
	for _, name := range []string{"kube-apiserver", "etcd", rig.Tool} {
		figures.Add(name+", idle", idle.Since(rested)[name].CPU.Seconds()/seconds, "cores", nil)
	}
	return environment.Moment(ctx, "waiting")
}

// release increases the quota and waits until it is used.
func (s *Run) release(ctx context.Context, environment Environment, figures *report.Section) error {
	expected := s.scenario.Backlog.Room * s.scenario.LeafCount()
	s.moved = s.Elapsed()
	if err := environment.Room(ctx, s.scenario.Backlog.Room); err != nil {
		return err
	}
	if err := environment.Moment(ctx, "releasing"); err != nil {
		return err
	}
	count, first, last, err := s.fillRoom(ctx, expected, 0)
	if err != nil {
		return err
	}
	figures.Count("to be released", expected)
	figures.Count("released", count)
	figures.Count("released more than once", s.again())
	figures.Add("first release after", first.Seconds(), "s", nil)
	figures.Add("last release after", last.Seconds(), "s", nil)
	figures.Add("rate", float64(count-1)/max(last-first, time.Millisecond).Seconds(), "releases/s", atLeast(s.scenario.Bars.ReleasesPerSecond))
	return nil
}

// restart restarts the controller and increases the quota while it is down.
func (s *Run) restart(ctx context.Context, environment Environment, figures *report.Section) error {
	plan, before := s.scenario.Backlog, s.Counts().Released
	started, err := environment.Restart(ctx, func(ctx context.Context) error { return environment.Room(ctx, plan.Room+plan.More) })
	if err != nil {
		return err
	}
	s.moved = started.Sub(s.start)
	expected := plan.More * s.scenario.LeafCount()
	count, first, last, err := s.fillRoom(ctx, expected, before)
	if err != nil {
		return err
	}
	figures.Count("to be released", expected)
	figures.Count("released", count)
	figures.Add("first release after", first.Seconds(), "s", atMost(s.scenario.Bars.RestartSeconds))
	figures.Add("last release after", last.Seconds(), "s", nil)
	return environment.Moment(ctx, "over")
}

// fillRoom waits until this many more units are released than before, and then for the time in which
// further releases would be seen, and the controller updates the reasons of the other units. It returns
// how many were released, and the times of the first and the last of them since the last move.
func (s *Run) fillRoom(ctx context.Context, units, before int) (count int, first, last time.Duration, err error) {
	if err := s.reach(ctx, fmt.Sprintf("%d are released", before+units), func(c Counts) bool { return c.Released >= before+units }); err != nil {
		return 0, 0, 0, err
	}
	settle := s.scenario.Backlog.Settle.Duration
	if err := s.Until(ctx, func(c Counts) bool { return s.Elapsed()-c.LastRelease >= settle }); err != nil {
		return 0, 0, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.units {
		at := s.units[i].Released - s.moved
		if s.units[i].Releases == 0 || at < 0 {
			continue
		}
		if first == 0 || at < first {
			first = at
		}
		last = max(last, at)
	}
	return s.counts.Released - before, first, last, nil
}
