package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/perf/jobs"
	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/perf/scenario"
)

// ample is the value of --room with which all jobs fit at the same time.
const ample = "ample"

const jobsHelp = `
Creates batch Jobs with one small pod on a cluster with kube-controller-manager,
kube-scheduler and simulated nodes, and waits until all of them have completed. Times are
taken from the audit log. --queue selects what releases the jobs:

  kube-queue       jobs are held by annotation and suspend field, and released by
                   kube-queue-controller and job-extensions
  none             jobs are created unsuspended without kube-queue: the baseline
  label:KEY=VALUE  jobs are created suspended with this label in namespace perf-jobs, and
                   released by the command of --with. The programs and policies of
                   kube-queue do not run. Such a queue ignores --room: create its quota
                   with --apply

--queue can be repeated: the queues then take turns on one cluster, --rounds times.
--compare adds the queue none as the first one. Each turn begins with 20 jobs that do not
count and ends when no more writes happen; then its objects are deleted.

The queue noopqueue releases each job immediately. It is a baseline for the minimum cost
of any queue:

  go build -o bin/ ./test/perf/noopqueue
  go run ./test/perf jobs --compare --queue=label:noop=yes --with='bin/noopqueue --label=noop=yes'`

// jobsFlags are the flags of the command jobs.
type jobsFlags struct {
	set      *pflag.FlagSet
	options  jobs.Options
	scenario string
	room     string
	queues   []string
	compare  bool
	rounds   int
	nodes    int
	keep     bool
}

func jobsCommand() command {
	return command{
		name: "jobs", summary: "measure batch Jobs on a complete cluster: completions, delays and writes, with any queue or none", help: jobsHelp,
		prepare: func(flags *pflag.FlagSet) measure {
			f := &jobsFlags{}
			f.add(flags)
			return f.measure
		},
	}
}

func (f *jobsFlags) add(flags *pflag.FlagSet) {
	f.set = flags
	flags.StringVar(&f.scenario, "scenario", "", "`NAME` or file of a scenario; other flags override it. Known scenarios: "+strings.Join(scenario.JobsNames(), ", "))
	flags.IntVar(&f.options.Jobs, "jobs", 2000, "`NUMBER` of jobs per turn")
	flags.Float64Var(&f.options.Rate, "rate", 0, "`NUMBER` of jobs created per second; 0: as fast as possible")
	flags.StringArrayVar(&f.queues, "queue", []string{jobs.KubeQueue}, "`QUEUE` that releases the jobs: kube-queue, none or label:KEY=VALUE; can be repeated")
	flags.StringVar(&f.room, "room", ample, "`NUMBER` of jobs that may run at a time in the quota of kube-queue, or ample")
	flags.DurationVar(&f.options.RunTime, "run-time", time.Second, "run time of each pod, a `DURATION`")
	flags.IntVar(&f.rounds, "rounds", 1, "`NUMBER` of turns per queue")
	flags.BoolVar(&f.compare, "compare", false, "compare with jobs that are created unsuspended, without a queue")
	flags.StringArrayVar(&f.options.Apply, "apply", nil, "`FILE` with manifests for a queue label:KEY=VALUE; can be repeated")
	flags.StringArrayVar(&f.options.With, "with", nil, "`COMMAND` to run with a queue label:KEY=VALUE, with sh -c and KUBECONFIG set; can be repeated")
	flags.IntVar(&f.nodes, "nodes", 20, "`NUMBER` of simulated nodes, each with room for 1,000 pods")
	flags.BoolVar(&f.options.WithoutPolicies, "without-policies", false, "run kube-queue without its admission policies, to measure their cost")
	flags.StringVar(&f.options.Profiles, "pprof", "", "`DIR` for CPU profiles of the programs and the API server in each turn")
	flags.BoolVar(&f.keep, "keep", false, "keep the logs of the cluster and the programs and print their folder")
}

// turns returns the queues in the order of their turns.
func (f *jobsFlags) turns() ([]jobs.Queue, error) {
	names := f.queues
	if f.compare {
		names = append([]string{jobs.None}, names...)
	}
	var queues []jobs.Queue
	known := map[string]bool{}
	for _, name := range names {
		queue, err := jobs.ParseQueue(name)
		if err != nil {
			return nil, err
		}
		if !known[name] {
			queues = append(queues, queue)
		}
		known[name] = true
	}
	return queues, nil
}

// load reads the scenario. Flags override its values.
func (f *jobsFlags) load() error {
	if f.scenario == "" {
		return nil
	}
	said := f.options
	s, err := scenario.LoadJobs(f.scenario)
	if err != nil {
		return err
	}
	f.options.Take(s)
	if f.set.Changed("jobs") {
		f.options.Jobs = said.Jobs
	}
	if f.set.Changed("rate") {
		f.options.Rate = said.Rate
	}
	if f.set.Changed("run-time") {
		f.options.RunTime = said.RunTime
	}
	return nil
}

// check validates and completes the options.
func (f *jobsFlags) check() (queues []jobs.Queue, err error) {
	if err := f.load(); err != nil {
		return nil, err
	}
	if f.set.Changed("room") {
		f.options.Room = 0
	}
	if f.room != ample {
		if f.options.Room, err = strconv.Atoi(f.room); err != nil || f.options.Room < 1 {
			return nil, fmt.Errorf("--room %q: must be ample or a number from 1", f.room)
		}
	}
	switch {
	case f.options.Jobs < 1:
		return nil, fmt.Errorf("--jobs %d: must be 1 or more", f.options.Jobs)
	case f.options.Rate < 0:
		return nil, fmt.Errorf("--rate %v: must not be negative", f.options.Rate)
	case f.options.RunTime < 0:
		return nil, fmt.Errorf("--run-time %v: must not be negative", f.options.RunTime)
	case f.rounds < 1:
		return nil, fmt.Errorf("--rounds %d: must be 1 or more", f.rounds)
	case f.nodes < 1:
		return nil, fmt.Errorf("--nodes %d: must be 1 or more", f.nodes)
	}
	queues, err = f.turns()
	if err != nil {
		return nil, err
	}
	others := slices.ContainsFunc(queues, jobs.Queue.Labelled)
	switch {
	case others && len(f.options.With) == 0:
		return nil, errors.New("a queue of label:KEY=VALUE needs a program that releases its jobs: set --with")
	case !others && len(f.options.With)+len(f.options.Apply) > 0:
		return nil, errors.New("--with and --apply need a queue of label:KEY=VALUE: set --queue")
	}
	return queues, nil
}

func (f *jobsFlags) measure(ctx context.Context, progress io.Writer) (*report.Report, error) {
	queues, err := f.check()
	if err != nil {
		return nil, fmt.Errorf("%w: jobs: %w", errUsage, err)
	}
	options := rig.Options{
		AuditObjects: jobs.AuditObjects, Nodes: f.nodes, NodeCPU: "256", NodeMemory: "1Ti", PodRunTime: f.options.RunTime,
		Profiling: f.options.Profiles != "", Log: progress,
	}
	return withRig(ctx, options, f.keep, progress, func(ctx context.Context, r *rig.Rig) (*report.Report, error) {
		return f.run(ctx, r, queues, progress)
	})
}

// run runs all turns on a rig.
func (f *jobsFlags) run(ctx context.Context, r *rig.Rig, queues []jobs.Queue, progress io.Writer) (*report.Report, error) {
	say := func(format string, args ...any) { fmt.Fprintf(progress, format+"\n", args...) }
	bench, err := jobs.New(ctx, r, f.options, say)
	if err != nil {
		return nil, err
	}
	outcomes := make([]*jobs.Outcome, len(queues))
	for i, queue := range queues {
		outcomes[i] = jobs.NewOutcome(queue)
	}
	for round := range f.rounds {
		for _, outcome := range outcomes {
			say("round %d of %d: %s", round+1, f.rounds, outcome.Queue.Name)
			if err := bench.Turn(ctx, outcome); err != nil {
				return nil, fmt.Errorf("%s: %w", outcome.Queue.Name, err)
			}
		}
	}
	figures := report.New("jobs", f.scenario, r.Version, nil)
	jobs.Report(figures, f.options, outcomes)
	return figures, nil
}
