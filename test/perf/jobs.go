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

// ample is the room for all jobs at once.
const ample = "ample"

const jobsHelp = `
Creates batch Jobs of one small pod on a cluster with kube-controller-manager,
kube-scheduler and simulated nodes, and waits until all have completed. Times are those
of the audit log. --queue says what releases them:

  kube-queue       held by annotation and suspend field, as users do, and released by
                   kube-queue-controller and job-extensions
  none             created unsuspended, and nothing of kube-queue runs: the yardstick
  label:KEY=VALUE  created suspended with this label, and released by what --with runs.
                   kube-queue's programs and policies are away meanwhile. --room is not
                   known to such a queue: give it its quota by --apply. The jobs are in
                   namespace perf-jobs

--queue may be given again: the queues then take turns on one cluster, --rounds times.
--compare has none among them, as the first. Each turn begins with 20 jobs that do not
count and ends when nobody writes any more; what it has left is deleted.

A queue of no thought at all, which releases each job as soon as it sees it, is a
yardstick for what any queue must cost at least:

  go build -o bin/ ./test/perf/noopqueue
  go run ./test/perf jobs --compare --queue=label:noop=yes --with='bin/noopqueue --label=noop=yes'`

// jobsFlags are those of the command jobs.
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
		name: "jobs", summary: "batch Jobs on a whole cluster: completions, delays and writes, with any queue or none", help: jobsHelp,
		prepare: func(flags *pflag.FlagSet) measure {
			f := &jobsFlags{}
			f.add(flags)
			return f.measure
		},
	}
}

func (f *jobsFlags) add(flags *pflag.FlagSet) {
	f.set = flags
	flags.StringVar(&f.scenario, "scenario", "", "`NAME` or file of what is created; other flags go before what it says. Known are "+strings.Join(scenario.JobsNames(), ", "))
	flags.IntVar(&f.options.Jobs, "jobs", 2000, "`NUMBER` of jobs of each turn")
	flags.Float64Var(&f.options.Rate, "rate", 0, "`NUMBER` of jobs created in a second; 0 for as fast as the API server takes them")
	flags.StringArrayVar(&f.queues, "queue", []string{jobs.KubeQueue}, "`QUEUE` that releases the jobs: kube-queue, none or label:KEY=VALUE; may be given again")
	flags.StringVar(&f.room, "room", ample, "`NUMBER` of jobs that may run at once by kube-queue's quota, or ample")
	flags.DurationVar(&f.options.RunTime, "run-time", time.Second, "`DURATION` that each pod runs")
	flags.IntVar(&f.rounds, "rounds", 1, "`NUMBER` of turns of each queue")
	flags.BoolVar(&f.compare, "compare", false, "compare with jobs created unsuspended without any queue")
	flags.StringArrayVar(&f.options.Apply, "apply", nil, "`FILE` of manifests for a queue of label:KEY=VALUE; may be given again")
	flags.StringArrayVar(&f.options.With, "with", nil, "`COMMAND` that runs beside a queue of label:KEY=VALUE, by sh -c with KUBECONFIG set; may be given again")
	flags.IntVar(&f.nodes, "nodes", 20, "`NUMBER` of simulated nodes, each with room for 1,000 pods")
	flags.BoolVar(&f.options.WithoutPolicies, "without-policies", false, "run kube-queue without its admission policies, to see what they cost")
	flags.StringVar(&f.options.Profiles, "pprof", "", "`DIR` for CPU profiles of kube-queue's programs and the API server, of each turn")
	flags.BoolVar(&f.keep, "keep", false, "leave the logs of the cluster and the programs, and say where")
}

// turns are the queues in the order of their turns.
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

// load reads the scenario. What is said by flags as well is as these say.
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

// check completes the options.
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
		return nil, errors.New("nothing would release the jobs of a queue of label:KEY=VALUE: give its programs by --with")
	case !others && len(f.options.With)+len(f.options.Apply) > 0:
		return nil, errors.New("--with and --apply are for a queue of label:KEY=VALUE: give it by --queue")
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

// run takes all turns on a rig.
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
