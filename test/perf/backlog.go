package main

import (
	"context"
	"fmt"
	"time"

	"kube-queue.dev/kube-queue/test/perf/loadgen"
	"kube-queue.dev/kube-queue/test/perf/pace"
	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

// backlog runs a scenario with a backlog and adds its figures: all units are created and wait,
// quota is given to some of them, and more while the controller is down.
func (u *unitsRun) backlog(ctx context.Context) error {
	if err := u.wait(ctx); err != nil {
		return err
	}
	plan, leaves := u.scenario.Backlog, u.scenario.LeafCount()

	section, began := u.figures.Section("room is made"), u.load.Elapsed()
	if err := u.room(ctx, plan.Room); err != nil {
		return err
	}
	profiled := u.profile(ctx, u.scenario.Name+".releasing", 0, profileAtMost/4)
	released, first, last, err := u.fill(ctx, plan.Room*leaves, began)
	if err != nil {
		return err
	}
	section.Count("released", released)
	section.Add("last release after", last.Seconds(), "s", nil)
	section.Add("rate", float64(released-1)/max(last-first, time.Millisecond).Seconds(), "releases/s", report.AtLeast(u.scenario.Bars.ReleasesPerSecond))
	if err := <-profiled; err != nil {
		return err
	}

	section = u.figures.Section("controller is killed, room is made and it starts")
	if began, err = u.restart(ctx, plan.Room+plan.More); err != nil {
		return err
	}
	profiled = u.profile(ctx, u.scenario.Name+".starting", 0, profileAtMost/2)
	if released, first, last, err = u.fill(ctx, (plan.Room+plan.More)*leaves, began); err != nil {
		return err
	}
	section.Count("released", released)
	section.Add("first release after", first.Seconds(), "s", report.AtMost(u.scenario.Bars.RestartSeconds))
	section.Add("last release after", last.Seconds(), "s", nil)
	return <-profiled
}

// wait waits until all units wait with a reason and there are no more writes, and then measures
// what is used while nothing happens.
func (u *unitsRun) wait(ctx context.Context) error {
	plan, units := u.scenario.Backlog, u.scenario.Units()
	section := u.figures.Section("waiting")
	use, _, err := u.during(ctx, func(ctx context.Context) error {
		if err := u.load.Reach(ctx, "every unit has a reason", func(c loadgen.Counts) bool { return c.Created == units && c.Reported == units }); err != nil {
			return err
		}
		section.Count("units", units)
		section.Add("created, each with a reason, after", u.load.Counts().LastEvent.Seconds(), "s", nil)
		return u.load.Reach(ctx, "nothing happens", func(c loadgen.Counts) bool { return u.load.Elapsed()-c.LastEvent >= plan.Settle.Duration })
	})
	if err != nil {
		return err
	}
	if c := u.load.Counts(); c.Released > 0 {
		return fmt.Errorf("%d units were released without quota", c.Released)
	}
	section.Add("controller, processor time", report.Milliseconds(use[rig.Controller].CPU)/float64(units), "ms a unit", nil)
	section.Add("controller, memory", report.MiB(use[rig.Controller].Resident), "MiB", report.AtMost(u.scenario.Bars.ControllerMiB))
	if err := pace.Pass(ctx, plan.Rest.Duration); err != nil {
		return err
	}
	idle, took, err := u.during(ctx, func(ctx context.Context) error { return pace.Pass(ctx, plan.Idle.Duration) })
	section.Add("controller, idle", idle[rig.Controller].CPU.Seconds()/took.Seconds(), "cores", report.AtMost(u.scenario.Bars.IdleCPU))
	return err
}

// room applies a tree with quota for this many units in each leaf.
func (u *unitsRun) room(ctx context.Context, units int) error {
	u.say("making room for %d units in each of %d queues", units, u.scenario.LeafCount())
	return u.ApplyTree(ctx, u.scenario.TreeWithRoom(units))
}

// fill waits until this many units are released, and then for the time in which further releases
// would be seen, and the controller updates the reasons of the other units. It returns
// how many were released since a time, and after how long the first and the last of them.
func (u *unitsRun) fill(ctx context.Context, units int, since time.Duration) (count int, first, last time.Duration, err error) {
	if err := u.load.Reach(ctx, fmt.Sprintf("%d are released", units), func(c loadgen.Counts) bool { return c.Released >= units }); err != nil {
		return 0, 0, 0, err
	}
	settle := u.scenario.Backlog.Settle.Duration
	if err := u.load.Reach(ctx, "no more are released", func(c loadgen.Counts) bool { return u.load.Elapsed()-c.LastRelease >= settle }); err != nil {
		return 0, 0, 0, err
	}
	var times report.Durations
	u.load.Each(func(unit *loadgen.Unit) {
		if unit.Released > since {
			times = append(times, unit.Released-since)
		}
	})
	return len(times), times.Percentile(0), times.Percentile(1), nil
}

// restart kills the controller, makes room while it is down, and starts it. It returns the time of the start.
func (u *unitsRun) restart(ctx context.Context, units int) (began time.Duration, err error) {
	u.say("killing the controller")
	if err := u.controller.Kill(); err != nil {
		return 0, err
	}
	if err := u.room(ctx, units); err != nil {
		return 0, err
	}
	// Otherwise the next process waits up to 15 s until the lease of the killed one expires.
	if _, err := u.Cluster.Kubectl(ctx, "delete", "lease", rig.Controller, "--namespace=kube-queue"); err != nil {
		return 0, err
	}
	began = u.load.Elapsed()
	u.controller, err = u.Launch(ctx, rig.Controller, policyEnv(u.scenario.Policy))
	return began, err
}
