package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/audit/log"
	"kube-queue.dev/kube-queue/test/perf/loadgen"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

const unitsHelp = `
Runs kube-queue-controller with an API server only, creates the QueueUnits of a scenario
as job-extensions would, observes their release and ends each unit after its run time.

A scenario is a file with a quota tree, classes of units and the bars for the figures.
Units are created at their times. In a scenario with a backlog, all units are created at
once and wait; then the quota is raised for some of them, and the controller is killed and
restarted with more quota.`

// unitsRun is the command units.
type unitsRun struct {
	name, policy string
	stretch      float64

	*session
	scenario   *loadgen.Scenario
	load       *loadgen.Run
	controller *rig.Program
}

func (u *unitsRun) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&u.name, "scenario", "baseline", "`NAME` of a scenario, or the path of its file. Known scenarios: "+strings.Join(loadgen.Names(), ", "))
	flags.StringVar(&u.policy, "policy", "", "`POLICY` of all queues, overrides the scenario: "+strings.Join(loadgen.Policies, ", "))
	flags.Float64Var(&u.stretch, "stretch", 1, "multiply all times, and the bar for the total time, by `FACTOR`: for an API server with a lower write rate")
}

func (u *unitsRun) parts() (parts []part, err error) {
	if u.scenario, err = loadgen.Load(u.name); err != nil {
		return nil, fmt.Errorf("--scenario: %w", err)
	}
	if u.policy != "" {
		u.scenario.Policy = u.policy
		if err := u.scenario.Check(); err != nil {
			return nil, fmt.Errorf("--policy: %w", err)
		}
	}
	if u.stretch < 0.01 || u.stretch > 100 {
		return nil, fmt.Errorf("--stretch: must be between 0.01 and 100, not %v", u.stretch)
	}
	u.scenario.Stretch(u.stretch)
	return []part{{apiOnly(false), u.run}}, nil
}

// run runs the scenario. Units of an earlier scenario may exist if they have ended.
func (u *unitsRun) run(ctx context.Context, s *session) (err error) {
	u.session = s
	s.say("%s: %s; policy %s", u.scenario.Name, u.scenario.About, u.scenario.Policy)
	if u.load, err = s.prepare(ctx, u.scenario); err != nil {
		return err
	}
	if u.controller, err = s.Run(ctx, rig.Controller, policyEnv(u.scenario.Policy)); err != nil {
		return err
	}
	writes, units := rig.Counts{}, float64(u.scenario.Units())
	if err := s.Writes(ctx, func(*log.Entry) {}); err != nil {
		return err
	}
	defer s.every(u.load.Progress)()
	play := u.stream
	if u.scenario.Backlog != nil {
		play = u.backlog
	}
	use, _, err := s.during(ctx, func(ctx context.Context) error { return u.load.Play(ctx, play) })
	if err != nil {
		return err
	}
	if err := s.Writes(ctx, writes.Add); err != nil {
		return err
	}
	writes.Show(s.figures.Section("writes of a unit"), units, rig.Bar{AtMost: u.scenario.Bars.WritesPerUnit})
	if u.scenario.Backlog == nil { // a restarted controller counts from 0
		u.total()
		use.Show(s.figures, "", units, rig.Bar{AtMost: u.scenario.Bars.ControllerCPU})
	}
	if again := u.load.Counts().Again; again > 0 {
		err = fmt.Errorf("%d releases of units that had been released before: this is a bug in kube-queue", again)
	}
	return errors.Join(err, u.controller.Stop())
}

// policyEnv returns the environment variables that set the default policy of queues.
func policyEnv(policy string) []string {
	return []string{fmt.Sprint("StrictPriority=", policy == "Block"), fmt.Sprint("StrictConsistency=", policy == "Priority")}
}

// stream waits until each unit was released and has ended.
func (u *unitsRun) stream(ctx context.Context) error {
	return u.load.Reach(ctx, "all have ended", func(c loadgen.Counts) bool { return c.Ended == u.scenario.Units() })
}

// total adds the figures of a scenario without a backlog.
func (u *unitsRun) total() {
	s, bars, counts := u.scenario, u.scenario.Bars, u.load.Counts()
	var late, waits rig.Durations
	last := time.Duration(0)
	u.load.Each(func(unit *loadgen.Unit) {
		late, last = append(late, unit.Late), max(last, unit.Ended)
		// The watch event can arrive before the response to the create.
		waits = append(waits, max(0, unit.Released-unit.Created))
	})
	all := u.figures.Section("in all")
	all.Count("units", s.Units())
	all.Add("wall", last.Seconds(), "s", rig.Bar{AtMost: bars.WallSeconds})
	all.Add("rate", float64(s.Units())/last.Seconds(), "units/s")
	if capacity := s.Capacity(); capacity > 0 {
		all.Add("floor of wall by work", s.Work()/capacity, "s")
		all.Add("useful work", s.Work()/(capacity*last.Seconds()), "of capacity", rig.Bar{AtLeast: bars.UsefulWork})
	}
	all.Count("released", counts.Released)
	all.Count("ended", counts.Ended)
	all.Add("created late, p99", rig.Milliseconds(late.Percentile(0.99)), "ms")
	u.figures.Section("wait from create to release").Spread(waits, rig.Bar{}, rig.Bar{})
}

// backlog runs a scenario with a backlog and adds its figures: all units are created and wait, some get quota, and
// more of them get quota while the controller is down.
func (u *unitsRun) backlog(ctx context.Context) error {
	if err := u.wait(ctx); err != nil {
		return err
	}
	plan, leaves := u.scenario.Backlog, u.scenario.LeafCount()

	section, began := u.figures.Section("room is made"), u.load.Elapsed()
	u.say("making room for %d units in each of %d queues", plan.Room, leaves)
	if err := u.ApplyTree(ctx, u.scenario.Tree(plan.Room)); err != nil {
		return err
	}
	released, first, last, err := u.fill(ctx, plan.Room*leaves, began)
	if err != nil {
		return err
	}
	section.Count("released", released)
	section.Add("last release after", last.Seconds(), "s")
	section.Add("rate", float64(released-1)/max(last-first, time.Millisecond).Seconds(), "releases/s", rig.Bar{AtLeast: u.scenario.Bars.ReleasesPerSecond})

	section = u.figures.Section("controller is killed, room is made and it starts")
	if began, err = u.restart(ctx, plan.Room+plan.More); err != nil {
		return err
	}
	if released, first, last, err = u.fill(ctx, (plan.Room+plan.More)*leaves, began); err != nil {
		return err
	}
	section.Count("released", released)
	section.Add("first release after", first.Seconds(), "s", rig.Bar{AtMost: u.scenario.Bars.RestartSeconds})
	section.Add("last release after", last.Seconds(), "s")
	return nil
}

// wait waits until all units have a reason and there are no more writes, and then measures the usage while idle.
func (u *unitsRun) wait(ctx context.Context) error {
	plan, units := u.scenario.Backlog, u.scenario.Units()
	section := u.figures.Section("waiting")
	use, _, err := u.during(ctx, func(ctx context.Context) error {
		if err := u.load.Reach(ctx, "every unit has a reason", func(c loadgen.Counts) bool { return c.Created == units && c.Reported == units }); err != nil {
			return err
		}
		section.Count("units", units)
		section.Add("created, each with a reason, after", u.load.Counts().LastEvent.Seconds(), "s")
		return u.load.Reach(ctx, "nothing happens", func(c loadgen.Counts) bool { return u.load.Elapsed()-c.LastEvent >= plan.Settle.Duration })
	})
	if err != nil {
		return err
	}
	if c := u.load.Counts(); c.Released > 0 {
		return fmt.Errorf("%d units were released without quota", c.Released)
	}
	section.Add("controller, processor time", rig.Milliseconds(use[rig.Controller].CPU)/float64(units), "ms a unit")
	section.Add("controller, memory", rig.MiB(use[rig.Controller].Resident), "MiB", rig.Bar{AtMost: u.scenario.Bars.ControllerMiB})
	if err := rig.Pass(ctx, plan.Rest.Duration); err != nil {
		return err
	}
	idle, took, err := u.during(ctx, func(ctx context.Context) error { return rig.Pass(ctx, plan.Idle.Duration) })
	section.Add("controller, idle", idle[rig.Controller].CPU.Seconds()/took.Seconds(), "cores", rig.Bar{AtMost: u.scenario.Bars.IdleCPU})
	return err
}

// fill waits until this many units are released, and then long enough to see further releases and for the controller
// to update the reasons of the other units. It returns how many were released after since, and the delay of the first
// and the last of them.
func (u *unitsRun) fill(ctx context.Context, units int, since time.Duration) (count int, first, last time.Duration, err error) {
	if err := u.load.Reach(ctx, fmt.Sprintf("%d are released", units), func(c loadgen.Counts) bool { return c.Released >= units }); err != nil {
		return 0, 0, 0, err
	}
	settle := u.scenario.Backlog.Settle.Duration
	if err := u.load.Reach(ctx, "no more are released", func(c loadgen.Counts) bool { return u.load.Elapsed()-c.LastRelease >= settle }); err != nil {
		return 0, 0, 0, err
	}
	var times rig.Durations
	u.load.Each(func(unit *loadgen.Unit) {
		if unit.Released > since {
			times = append(times, unit.Released-since)
		}
	})
	return len(times), times.Percentile(0), times.Percentile(1), nil
}

// restart kills the controller, makes room while it is down, and starts it. It returns the time of the start.
func (u *unitsRun) restart(ctx context.Context, units int) (began time.Duration, err error) {
	u.say("killing the controller, and making room for %d units in each queue", units)
	u.controller.Kill()
	if err := u.ApplyTree(ctx, u.scenario.Tree(units)); err != nil {
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

const ceilingHelp = `
Sends the writes of a QueueUnit (create, release, end) from a minimal client, without a
controller: first each kind of write for all units, then all three writes per unit. No
queue that needs these writes can be faster on the machine.`

// ceilingLeaves is the number of namespaces of the units, as in the baseline scenario.
const ceilingLeaves = 30

// ceilingRun is the command ceiling.
type ceilingRun struct {
	// units is the number of units of each part, a multiple of ceilingLeaves.
	units           int
	withoutPolicies bool
}

func (c *ceilingRun) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&c.withoutPolicies, "without-policies", false, "run without the admission policies of kube-queue, to measure their cost")
}

func (c *ceilingRun) parts() ([]part, error) {
	return []part{{apiOnly(c.withoutPolicies), c.run}}, nil
}

func (c *ceilingRun) run(ctx context.Context, s *session) error {
	apart, err := s.prepare(ctx, loadgen.Uniform("apart", ceilingLeaves, c.units))
	if err != nil {
		return err
	}
	mixed, err := s.prepare(ctx, loadgen.Uniform("mixed", ceilingLeaves, c.units))
	if err != nil {
		return err
	}
	type write = func(context.Context, int) error
	for _, step := range []struct {
		name   string
		writes []write
	}{
		{"create", []write{apart.Create}}, {"release", []write{apart.Release}}, {"end", []write{apart.End}},
		{"create, release and end in turn", []write{mixed.Create, mixed.Release, mixed.End}},
	} {
		count := apart.Units()
		s.say("%s: %d units", step.name, count)
		use, took, err := s.during(ctx, func(ctx context.Context) error {
			return rig.Each(ctx, rig.InFlight, count, func(ctx context.Context, i int) (err error) {
				for n := 0; n < len(step.writes) && err == nil; n++ {
					err = step.writes[n](ctx, i)
				}
				return err
			})
		})
		if err != nil {
			return err
		}
		writes := float64(len(step.writes) * count)
		section := s.figures.Section(step.name)
		section.Add("rate", writes/took.Seconds(), "writes/s")
		for _, name := range []string{"kube-apiserver", "etcd", rig.Tool} {
			section.Add(name, rig.Milliseconds(use[name].CPU)/writes, "ms a write")
		}
	}
	return nil
}
