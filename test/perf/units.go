package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/perf/loadgen"
	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/perf/scenario"
	"kube-queue.dev/kube-queue/test/perf/trail"
)

const unitsHelp = `
Runs kube-queue-controller with an API server only, creates the QueueUnits of a scenario
as job-extensions would, observes their release and ends each unit after its run time.

A scenario is a file with a quota tree, classes of units and the bars for the figures. In
a scenario of kind Stream, units are created at their times. In a scenario of kind
Backlog, all units are created at once and wait; then the quota is raised for some of
them, and the controller is killed and restarted with more quota.`

// progressPeriod is the interval of progress output.
const progressPeriod = 5 * time.Second

// unitsFlags are the flags of the command units.
type unitsFlags struct {
	scenario, policy, pprof string
	stretch                 float64
	keep                    bool
}

func unitsCommand() command {
	return command{
		name: "units", summary: "measure kube-queue-controller with QueueUnits of simulated jobs", help: unitsHelp,
		prepare: func(flags *pflag.FlagSet) measure {
			f := &unitsFlags{}
			flags.StringVar(&f.scenario, "scenario", "baseline", "`NAME` of a scenario, or the path of its file. Known scenarios: "+strings.Join(scenario.Names(), ", "))
			flags.StringVar(&f.policy, "policy", "", "`POLICY` of all queues, overrides the scenario: "+strings.Join(scenario.Policies, ", "))
			flags.Float64Var(&f.stretch, "stretch", 1, "multiply all times, and the bar for the total time, by `FACTOR`: for an API server with a lower write rate")
			flags.StringVar(&f.pprof, "pprof", "", "`DIR` for profiles of the controller, the API server and this tool; profiling takes time")
			flags.BoolVar(&f.keep, "keep", false, "keep the logs of the cluster and the controller and print their folder")
			return f.measure
		},
	}
}

func (f *unitsFlags) measure(ctx context.Context, progress io.Writer) (*report.Report, error) {
	s, err := f.read()
	if err != nil {
		return nil, fmt.Errorf("%w: units: %w", errUsage, err)
	}
	return withRig(ctx, rig.Options{OnlyAPI: true, Log: progress, Profiling: f.pprof != ""}, f.keep, progress,
		func(ctx context.Context, r *rig.Rig) (*report.Report, error) {
			stopProfile, err := profileTool(f.pprof)
			if err != nil {
				return nil, err
			}
			figures, err := playUnits(ctx, r, s, f.pprof, progress)
			return figures, errors.Join(err, stopProfile())
		})
}

func (f *unitsFlags) read() (*scenario.Scenario, error) {
	s, err := scenario.Load(f.scenario)
	if err != nil {
		return nil, fmt.Errorf("--scenario: %w", err)
	}
	if f.policy != "" {
		if err := scenario.CheckPolicy(f.policy); err != nil {
			return nil, fmt.Errorf("--policy: %w", err)
		}
		s.Policy = f.policy
	}
	if f.stretch < 0.01 || f.stretch > 100 {
		return nil, fmt.Errorf("--stretch: must be between 0.01 and 100, not %v", f.stretch)
	}
	s.Stretch(f.stretch)
	return s, nil
}

// withRig starts a rig for a measurement, and always stops it.
func withRig(ctx context.Context, options rig.Options, keep bool, progress io.Writer,
	measure func(context.Context, *rig.Rig) (*report.Report, error)) (figures *report.Report, err error) {
	r, err := rig.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() {
		end := r.Close
		if keep || err != nil && ctx.Err() == nil {
			fmt.Fprintf(progress, "logs: %s\n", r.Cluster.Data)
			end = r.CloseAndKeep
		}
		err = errors.Join(err, end())
	}()
	return measure(ctx, r)
}

// unitsRun is one run of a scenario on a rig.
type unitsRun struct {
	rig      *rig.Rig
	scenario *scenario.Scenario
	profiles string // the folder, if any
	progress io.Writer

	stage      *loadgen.Run
	controller *rig.Program
	// profiling receives the result of a running profile.
	profiling chan error
	// guard ends the run if the program exits without being killed by it.
	guard  func(*rig.Program)
	killed atomic.Pointer[rig.Program]
}

// playUnits runs a scenario. profiles is the folder for profiles of the controller, or empty. Units
// of an earlier scenario can exist if they have ended.
func playUnits(ctx context.Context, r *rig.Rig, s *scenario.Scenario, profiles string, progress io.Writer) (*report.Report, error) {
	u := &unitsRun{rig: r, scenario: s, profiles: profiles, progress: progress}
	client, err := u.prepare(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if u.stage, err = loadgen.NewRun(client, s); err != nil {
		return nil, err
	}
	log := trail.Open(r.Cluster.AuditLog)
	if err := log.Skip(); err != nil {
		return nil, err
	}
	figures := report.New("units", s.Name, r.Version, nil)
	outcome := loadgen.NewOutcome(u.stage)
	finish, err := u.play(ctx, figures, outcome)
	if err != nil {
		return nil, err
	}
	if err := r.ReadTrail(ctx, log, outcome.Add); err != nil {
		return nil, err
	}
	finish()
	return figures, errors.Join(u.controller.Stop(), outcome.Check())
}

// prepare creates all objects and then starts the controller.
func (u *unitsRun) prepare(ctx context.Context) (*loadgen.Client, error) {
	fmt.Fprintf(u.progress, "%s: %s; policy %s\n", u.scenario.Name, u.scenario.About, u.scenario.Policy)
	tree, err := u.scenario.Tree()
	if err != nil {
		return nil, err
	}
	if err := u.rig.MakeNamespaces(ctx, u.scenario.Namespaces()); err != nil {
		return nil, err
	}
	if err := u.rig.ApplyTree(ctx, tree); err != nil {
		return nil, err
	}
	config, _, err := u.rig.Cluster.ServiceAccountConfig(ctx, rig.Extensions)
	if err != nil {
		return nil, err
	}
	if u.controller, err = u.rig.RunWith(ctx, rig.Controller, policyEnv(u.scenario.Policy)); err != nil {
		return nil, err
	}
	return loadgen.NewClient(config, loadgen.Agent)
}

// policyEnv returns the environment variables that set the default policy of queues.
func policyEnv(policy string) []string {
	return []string{fmt.Sprint("StrictPriority=", policy == "Block"), fmt.Sprint("StrictConsistency=", policy == "Priority")}
}

// play runs the scenario. The returned function adds the figures after the audit log is read.
func (u *unitsRun) play(ctx context.Context, figures *report.Report, outcome *loadgen.Outcome) (finish func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	u.guard = func(p *rig.Program) { go u.watchOver(ctx, p, cancel) }
	u.guard(u.controller)
	stop := every(progressPeriod, func() { fmt.Fprintln(u.progress, u.stage.Progress()) })
	defer stop()
	before, err := u.rig.Use()
	if err != nil {
		return nil, err
	}
	var backlog *loadgen.BacklogFigures
	if u.scenario.Kind == scenario.Backlog {
		backlog, err = u.stage.RunBacklog(ctx, u)
	} else {
		u.profileMiddle(ctx)
		err = u.stage.RunStream(ctx)
	}
	if err != nil {
		return nil, err
	}
	after, err := u.rig.Use()
	if err != nil {
		return nil, err
	}
	if err := u.profiled(); err != nil {
		return nil, err
	}
	return func() {
		if backlog != nil {
			outcome.Backlog(figures, backlog)
		} else {
			outcome.Totals(figures)
			outcome.Waits(figures)
		}
		outcome.Writes(figures)
		outcome.Processes(figures, after.Since(before))
	}, nil
}
