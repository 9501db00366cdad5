package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/perf/loadgen"
	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/perf/scenario"
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
	scenario   *scenario.Scenario
	load       *loadgen.Run
	controller *rig.Program
}

func (u *unitsRun) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&u.name, "scenario", "baseline", "`NAME` of a scenario, or the path of its file. Known scenarios: "+strings.Join(scenario.Names(), ", "))
	flags.StringVar(&u.policy, "policy", "", "`POLICY` of all queues, overrides the scenario: "+strings.Join(scenario.Policies, ", "))
	flags.Float64Var(&u.stretch, "stretch", 1, "multiply all times, and the bar for the total time, by `FACTOR`: for an API server with a lower write rate")
}

func (u *unitsRun) parts() (parts []part, err error) {
	if u.scenario, err = scenario.Load(u.name); err != nil {
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
	return []part{{apiOnly(), u.run}}, nil
}

// run runs the scenario. Units of an earlier scenario can exist if they have ended.
func (u *unitsRun) run(ctx context.Context, s *session) (err error) {
	u.session = s
	s.say("%s: %s; policy %s", u.scenario.Name, u.scenario.About, u.scenario.Policy)
	if u.load, err = s.prepare(ctx, u.scenario); err != nil {
		return err
	}
	if u.controller, err = s.Run(ctx, rig.Controller, policyEnv(u.scenario.Policy)); err != nil {
		return err
	}
	log, err := s.Log()
	if err != nil {
		return err
	}
	stop := s.every(u.load.Progress)
	defer stop()
	play := u.stream
	if u.scenario.Backlog != nil {
		play = u.backlog
	}
	use, _, err := s.during(ctx, func(ctx context.Context) error { return u.load.Play(ctx, play) })
	if err != nil {
		return err
	}
	writes, units := rig.Counts{}, float64(u.scenario.Units())
	if err := log.Read(ctx, writes.Add); err != nil {
		return err
	}
	writes.Show(s.figures.Section("writes of a unit"), units, report.AtMost(u.scenario.Bars.WritesPerUnit))
	if u.scenario.Backlog == nil { // a controller that is restarted counts from 0
		u.total()
		use.Show(s.figures, "", units, report.AtMost(u.scenario.Bars.ControllerCPU))
	}
	if again := u.load.Counts().Again; again > 0 {
		err = fmt.Errorf("%d units were released more than once: this is a bug in kube-queue", again)
	}
	return errors.Join(err, u.controller.Stop())
}

// policyEnv returns the environment variables that set the default policy of queues.
func policyEnv(policy string) []string {
	return []string{fmt.Sprint("StrictPriority=", policy == "Block"), fmt.Sprint("StrictConsistency=", policy == "Priority")}
}

// stream waits until each unit was released and has ended. The profile starts after a third of it.
func (u *unitsRun) stream(ctx context.Context) error {
	arrivals := u.scenario.Arrivals()
	third := arrivals[len(arrivals)-1].At / 3
	profiled := u.profile(ctx, u.scenario.Name, third, third)
	err := u.load.Reach(ctx, "all have ended", func(c loadgen.Counts) bool { return c.Ended == len(arrivals) })
	return errors.Join(err, <-profiled)
}

// total adds the figures of a scenario without a backlog.
func (u *unitsRun) total() {
	s, bars, counts := u.scenario, u.scenario.Bars, u.load.Counts()
	var late, waits report.Durations
	last := time.Duration(0)
	u.load.Each(func(unit *loadgen.Unit) {
		late, last = append(late, unit.Late), max(last, unit.Ended)
		// The watch event can arrive before the response to the create.
		waits = append(waits, max(0, unit.Released-unit.Created))
	})
	all := u.figures.Section("in all")
	all.Count("units", s.Units())
	all.Add("wall", last.Seconds(), "s", report.AtMost(bars.WallSeconds))
	all.Add("rate", float64(s.Units())/last.Seconds(), "units/s", nil)
	if capacity := s.Capacity(); capacity > 0 {
		all.Add("floor of wall by work", s.Work()/capacity, "s", nil)
		all.Add("useful work", s.Work()/(capacity*last.Seconds()), "of capacity", report.AtLeast(bars.UsefulWork))
	}
	all.Count("released", counts.Released)
	all.Count("ended", counts.Ended)
	all.Add("created late, p99", report.Milliseconds(late.Percentile(0.99)), "ms", nil)
	u.figures.Section("wait from create to release").Spread(waits, nil, nil)
}
