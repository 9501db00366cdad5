package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/perf/loadgen"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/perf/scenario"
)

const unitsHelp = `
Runs kube-queue-controller with an API server only, creates the QueueUnits of a scenario
as job-extensions would, observes their release and ends each unit after its run time.

A scenario is a file with a quota tree, classes of units and the bars for the figures. In
a scenario of kind Stream, units are created at their times. In a scenario of kind
Backlog, all units are created at once and wait; then the quota is raised for some of
them, and the controller is killed and restarted with more quota.`

// unitsRun is the command units.
type unitsRun struct {
	name, policy string
	stretch      float64
	scenario     *scenario.Scenario

	session    *session
	load       *loadgen.Run
	controller *rig.Program
	// profiling receives the result of a running profile.
	profiling <-chan error
	// guard ends the run if the program exits without being killed by it.
	guard func(*rig.Program)
}

func (u *unitsRun) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&u.name, "scenario", "baseline", "`NAME` of a scenario, or the path of its file. Known scenarios: "+strings.Join(scenario.Names(), ", "))
	flags.StringVar(&u.policy, "policy", "", "`POLICY` of all queues, overrides the scenario: "+strings.Join(scenario.Policies, ", "))
	flags.Float64Var(&u.stretch, "stretch", 1, "multiply all times, and the bar for the total time, by `FACTOR`: for an API server with a lower write rate")
}

func (u *unitsRun) check() (options rig.Options, err error) {
	options = apiOnly()
	if u.scenario, err = scenario.Load(u.name); err != nil {
		return options, fmt.Errorf("--scenario: %w", err)
	}
	if u.policy != "" {
		if err := scenario.CheckPolicy(u.policy); err != nil {
			return options, fmt.Errorf("--policy: %w", err)
		}
		u.scenario.Policy = u.policy
	}
	if u.stretch < 0.01 || u.stretch > 100 {
		return options, fmt.Errorf("--stretch: must be between 0.01 and 100, not %v", u.stretch)
	}
	u.scenario.Stretch(u.stretch)
	return options, nil
}

// run runs the scenario. Units of an earlier scenario can exist if they have ended.
func (u *unitsRun) run(ctx context.Context, s *session) error {
	u.session, s.figures.Scenario = s, u.scenario.Name
	client, err := u.prepare(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	u.load = loadgen.NewRun(client, u.scenario)
	log := s.Log()
	if err := log.Skip(); err != nil {
		return err
	}
	before, err := s.Use()
	if err != nil {
		return err
	}
	if err := u.play(ctx); err != nil {
		return err
	}
	after, err := s.Use()
	if err != nil {
		return err
	}
	outcome := loadgen.NewOutcome(u.load)
	if err := errors.Join(u.profiled(), s.ReadAll(ctx, log, outcome.Add)); err != nil {
		return err
	}
	if u.scenario.Kind == scenario.Stream {
		outcome.Totals(s.figures)
		outcome.Waits(s.figures)
	}
	outcome.Writes(s.figures)
	outcome.Processes(s.figures, after.Since(before))
	return errors.Join(u.controller.Stop(), outcome.Check())
}

// prepare creates all objects and then starts the controller.
func (u *unitsRun) prepare(ctx context.Context) (*loadgen.Client, error) {
	u.session.say("%s: %s; policy %s", u.scenario.Name, u.scenario.About, u.scenario.Policy)
	client, err := u.session.prepare(ctx, u.scenario)
	if err != nil {
		return nil, err
	}
	u.controller, err = u.session.Run(ctx, rig.Controller, policyEnv(u.scenario.Policy))
	return client, err
}

// policyEnv returns the environment variables that set the default policy of queues.
func policyEnv(policy string) []string {
	return []string{fmt.Sprint("StrictPriority=", policy == "Block"), fmt.Sprint("StrictConsistency=", policy == "Priority")}
}

func (u *unitsRun) play(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	u.guard = func(p *rig.Program) { go p.Guard(ctx, cancel) }
	u.guard(u.controller)
	stop := u.session.every(u.load.Progress)
	defer stop()
	if u.scenario.Kind == scenario.Backlog {
		return u.load.RunBacklog(ctx, u, u.session.figures)
	}
	// The profile starts after a third of the stream.
	arrivals := u.scenario.Arrivals()
	third := arrivals[len(arrivals)-1].At / 3
	u.profile(ctx, third, third, "cpu")
	return errors.Join(u.load.RunStream(ctx), u.profiled())
}

// Room applies a tree with quota for this many units in each leaf.
func (u *unitsRun) Room(ctx context.Context, units int) error {
	tree, err := u.scenario.TreeWithRoom(units)
	if err != nil {
		return err
	}
	u.session.say("making room for %d units in each of %d queues", units, u.scenario.LeafCount())
	return u.session.ApplyTree(ctx, tree)
}

// Restart kills and restarts the controller.
func (u *unitsRun) Restart(ctx context.Context, meanwhile func(context.Context) error) (began time.Time, err error) {
	if err := u.profiled(); err != nil {
		return began, err
	}
	u.session.say("killing the controller")
	if err := u.controller.Kill(); err != nil {
		return began, err
	}
	if err := meanwhile(ctx); err != nil {
		return began, err
	}
	if err := u.session.GiveUpLease(ctx, rig.Controller); err != nil {
		return began, err
	}
	began = time.Now()
	if u.controller, err = u.session.Launch(ctx, rig.Controller, policyEnv(u.scenario.Policy)); err != nil {
		return began, err
	}
	u.guard(u.controller)
	u.profile(ctx, 0, profileAtMost/2, "starting.cpu")
	return began, nil
}

// Use returns the use of all processes.
func (u *unitsRun) Use() (rig.Use, error) { return u.session.Use() }

// Moment takes the profiles of a backlog.
func (u *unitsRun) Moment(ctx context.Context, name string) error {
	switch {
	case name == "waiting" && u.session.pprof != "":
		return u.controller.HeapProfile(ctx, u.session.pprof, u.scenario.Name+".waiting.heap")
	case name == "releasing":
		u.profile(ctx, 0, profileAtMost/4, "releasing.cpu")
	case name == "over":
		return u.profiled() // of the start, if it is not complete
	}
	return nil
}

func (u *unitsRun) profile(ctx context.Context, later, during time.Duration, kind string) {
	u.profiling = u.session.profile(ctx, later, during, u.scenario.Name+"."+kind, u.controller)
}

// profiled waits for the end of a running profile, if any.
func (u *unitsRun) profiled() error {
	if u.profiling == nil {
		return nil
	}
	err := <-u.profiling
	u.profiling = nil
	return err
}
