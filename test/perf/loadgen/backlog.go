package loadgen

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

// Scenery is what a backlog is played on: it changes the quota and the controller.
type Scenery interface {
	// Room puts a tree in force with room for so many units of each leaf.
	Room(ctx context.Context, units int) error
	// Restart ends the controller at once, does meanwhile and starts it again without
	// waiting until it is ready. It returns when it was started.
	Restart(ctx context.Context, meanwhile func(context.Context) error) (time.Time, error)
	Use() (rig.Use, error)
	// Moment is called when the stage has come to a part of the play: "waiting",
	// "releasing", "over".
	Moment(ctx context.Context, name string) error
}

// BacklogFigures are what a backlog is played for.
type BacklogFigures struct {
	// Reported is the time from the first create until the reasons of all units were written.
	Reported time.Duration
	// Waiting is what was used until then, Idle what in IdleFor after it.
	Waiting, Idle rig.Use
	IdleFor       time.Duration
	// Expected were to be released in each of the two parts.
	Expected [2]int
	// Released is how many were in each part.
	Released [2]int
	// First and Last are the releases of the first part, after the change of the tree
	// was sent.
	First, Last time.Duration
	// Restart is the time from the start of the controller to its first release,
	// RestartAll to the last.
	Restart, RestartAll time.Duration
}

// RunBacklog plays a scenario of kind Backlog.
func (s *Run) RunBacklog(ctx context.Context, scenery Scenery) (*BacklogFigures, error) {
	f := &BacklogFigures{}
	before, err := scenery.Use()
	if err != nil {
		return nil, err
	}
	err = s.Play(ctx, func(ctx context.Context) error {
		for _, part := range []func(context.Context, Scenery, *BacklogFigures) error{s.fill, s.idle, s.release, s.restart} {
			if err := part(ctx, scenery, f); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.Waiting = f.Waiting.Since(before)
	return f, nil
}

// fill waits until all units wait and were reported why, and nothing is written.
func (s *Run) fill(ctx context.Context, scenery Scenery, f *BacklogFigures) error {
	reported := func(c Counts) bool { return c.Created == len(s.units) && c.Reported == len(s.units) }
	if err := s.reach(ctx, "every unit has a reason", reported); err != nil {
		return err
	}
	f.Reported = s.Counts().LastEvent
	if err := s.quiet(ctx); err != nil {
		return err
	}
	if c := s.Counts(); c.Released > 0 {
		return fmt.Errorf("%d units were released while there was no room", c.Released)
	}
	var err error
	f.Waiting, err = scenery.Use()
	return err
}

// quiet waits until nothing is written.
func (s *Run) quiet(ctx context.Context) error {
	settle := s.scenario.Backlog.Settle.Duration
	return s.Until(ctx, func(c Counts) bool { return s.Elapsed()-max(c.LastEvent, s.moved) >= settle })
}

func (s *Run) idle(ctx context.Context, scenery Scenery, f *BacklogFigures) error {
	if err := pass(ctx, s.scenario.Backlog.Rest.Duration); err != nil {
		return err
	}
	began := time.Now()
	before, err := scenery.Use()
	if err != nil {
		return err
	}
	if err := pass(ctx, s.scenario.Backlog.Idle.Duration); err != nil {
		return err
	}
	after, err := scenery.Use()
	if err != nil {
		return err
	}
	f.Idle, f.IdleFor = after.Since(before), time.Since(began)
	return scenery.Moment(ctx, "waiting")
}

// pass waits.
func pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// release makes room and waits until it is full.
func (s *Run) release(ctx context.Context, scenery Scenery, f *BacklogFigures) error {
	room := s.scenario.Backlog.Room
	f.Expected[0] = room * s.scenario.LeafCount()
	made := s.Elapsed()
	s.moved = made
	if err := scenery.Room(ctx, room); err != nil {
		return err
	}
	if err := scenery.Moment(ctx, "releasing"); err != nil {
		return err
	}
	if err := s.fillRoom(ctx, f.Expected[0]); err != nil {
		return err
	}
	f.Released[0] = s.Counts().Released
	first, last := s.releasesAfter(0)
	f.First, f.Last = first-made, last-made
	return nil
}

// fillRoom waits until so many are released, and whether more follow.
func (s *Run) fillRoom(ctx context.Context, units int) error {
	if err := s.reach(ctx, fmt.Sprintf("%d are released", units), func(c Counts) bool { return c.Released >= units }); err != nil {
		return err
	}
	// Meanwhile the others are reported that they wait for something else now.
	settle := s.scenario.Backlog.Settle.Duration
	return s.Until(ctx, func(c Counts) bool { return s.Elapsed()-c.LastRelease >= settle })
}

// restart has the controller find more room when it starts.
func (s *Run) restart(ctx context.Context, scenery Scenery, f *BacklogFigures) error {
	plan := s.scenario.Backlog
	f.Expected[1] = plan.More * s.scenario.LeafCount()
	started, err := scenery.Restart(ctx, func(ctx context.Context) error { return scenery.Room(ctx, plan.Room+plan.More) })
	if err != nil {
		return err
	}
	began := started.Sub(s.start)
	s.moved = began
	if err := s.fillRoom(ctx, f.Expected[0]+f.Expected[1]); err != nil {
		return err
	}
	f.Released[1] = s.Counts().Released - f.Released[0]
	first, last := s.releasesAfter(began)
	f.Restart, f.RestartAll = first-began, last-began
	return scenery.Moment(ctx, "over")
}

// releasesAfter are the times of the first and the last release after that time.
func (s *Run) releasesAfter(began time.Duration) (first, last time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.units {
		at := s.units[i].Released
		if s.units[i].Releases == 0 || at < began {
			continue
		}
		if first == 0 || at < first {
			first = at
		}
		last = max(last, at)
	}
	return first, last
}

// Backlog adds the figures of a backlog.
func (o *Outcome) Backlog(r *report.Report, f *BacklogFigures) {
	bars, units := o.stage.scenario.Bars, float64(len(o.stage.units))
	s := r.Section("waiting")
	s.Count("units", len(o.stage.units))
	s.Add("created, each with a reason, after", f.Reported.Seconds(), "s", nil)
	controller := f.Waiting[rig.Controller]
	s.Add("controller, processor time", report.Milliseconds(controller.CPU)/units, "ms a unit", nil)
	s.Add("controller, memory", report.MiB(controller.Resident), "MiB", atMost(bars.ControllerMiB))
	s.Add("controller, peak memory", report.MiB(controller.Peak), "MiB", nil)
	for _, name := range []string{rig.Controller, "kube-apiserver", "etcd", rig.Tool} {
		var bar *report.Bar
		if name == rig.Controller {
			bar = atMost(bars.IdleCPU)
		}
		s.Add(name+", idle", f.Idle[name].CPU.Seconds()/f.IdleFor.Seconds(), "cores", bar)
	}

	s = r.Section("room is made")
	s.Count("to be released", f.Expected[0])
	s.Count("released", f.Released[0])
	s.Count("released more than once", o.again())
	s.Add("first release after", f.First.Seconds(), "s", nil)
	s.Add("last release after", f.Last.Seconds(), "s", nil)
	s.Add("rate", float64(f.Released[0]-1)/max(f.Last-f.First, time.Millisecond).Seconds(), "releases/s", atLeast(bars.ReleasesPerSecond))

	s = r.Section("controller is killed, room is made and it starts")
	s.Count("to be released", f.Expected[1])
	s.Count("released", f.Released[1])
	s.Add("first release after", f.Restart.Seconds(), "s", atMost(bars.RestartSeconds))
	s.Add("last release after", f.RestartAll.Seconds(), "s", nil)
}

// Check reports what must not be, whatever the figures.
func (o *Outcome) Check() error {
	if again := o.again(); again > 0 {
		return fmt.Errorf("%d units were released more than once: this is a fault of kube-queue", again)
	}
	if done, _ := o.counts.Sum(Ours); done == 0 {
		return errors.New("the audit log contains no write of kube-queue, so the figures would be meaningless")
	}
	return nil
}
