package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/perf/jobs"
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

// jobsRun is the command jobs.
type jobsRun struct {
	flags         *pflag.FlagSet
	options       jobs.Options
	scenario      string
	room          string
	names         []string
	queues        []jobs.Queue
	compare       bool
	rounds, nodes int
}

func (j *jobsRun) addFlags(flags *pflag.FlagSet) {
	j.flags = flags
	flags.StringVar(&j.scenario, "scenario", "", "`NAME` or file of a scenario; other flags override it. Known scenarios: "+strings.Join(scenario.JobsNames(), ", "))
	flags.IntVar(&j.options.Jobs, "jobs", 2000, "`NUMBER` of jobs per turn")
	flags.Float64Var(&j.options.Rate, "rate", 0, "`NUMBER` of jobs created per second; 0: as fast as possible")
	flags.StringArrayVar(&j.names, "queue", []string{jobs.KubeQueue}, "`QUEUE` that releases the jobs: kube-queue, none or label:KEY=VALUE; can be repeated")
	flags.StringVar(&j.room, "room", ample, "`NUMBER` of jobs that may run at a time in the quota of kube-queue, or ample")
	flags.DurationVar(&j.options.RunTime, "run-time", time.Second, "run time of each pod, a `DURATION`")
	flags.IntVar(&j.rounds, "rounds", 1, "`NUMBER` of turns per queue")
	flags.BoolVar(&j.compare, "compare", false, "compare with jobs that are created unsuspended, without a queue")
	flags.StringArrayVar(&j.options.Apply, "apply", nil, "`FILE` with manifests for a queue label:KEY=VALUE; can be repeated")
	flags.StringArrayVar(&j.options.With, "with", nil, "`COMMAND` to run with a queue label:KEY=VALUE, with sh -c and KUBECONFIG set; can be repeated")
	flags.IntVar(&j.nodes, "nodes", 20, "`NUMBER` of simulated nodes, each with room for 1,000 pods")
	flags.BoolVar(&j.options.WithoutPolicies, "without-policies", false, "run kube-queue without its admission policies, to measure their cost")
}

// load sets the flags of the scenario that are not in the command line.
func (j *jobsRun) load() error {
	if j.scenario == "" {
		return nil
	}
	values, err := scenario.JobsFlags(j.scenario, "jobs", "rate", "room", "run-time")
	if err != nil {
		return err
	}
	for name, value := range values {
		if j.flags.Changed(name) {
			continue
		}
		if err := j.flags.Lookup(name).Value.Set(value); err != nil {
			return fmt.Errorf("scenario %s: %s: %w", j.scenario, name, err)
		}
	}
	return nil
}

func (j *jobsRun) check() (options rig.Options, err error) {
	if err := j.load(); err != nil {
		return options, err
	}
	if j.room != ample {
		if j.options.Room, err = strconv.Atoi(j.room); err != nil || j.options.Room < 1 {
			return options, fmt.Errorf("--room %q: must be ample or a number from 1", j.room)
		}
	}
	if j.options.Jobs < 1 || j.rounds < 1 || j.nodes < 1 {
		return options, errors.New("--jobs, --rounds and --nodes must be 1 or more")
	}
	if j.options.Rate < 0 || j.options.RunTime < 0 {
		return options, errors.New("--rate and --run-time must not be negative")
	}
	if j.queues, err = parseQueues(j.names, j.compare); err != nil {
		return options, err
	}
	others := slices.ContainsFunc(j.queues, jobs.Queue.Labelled)
	switch {
	case others && len(j.options.With) == 0:
		return options, errors.New("a queue of label:KEY=VALUE needs a program that releases its jobs: set --with")
	case !others && len(j.options.With)+len(j.options.Apply) > 0:
		return options, errors.New("--with and --apply need a queue of label:KEY=VALUE: set --queue")
	}
	options.Options = clustertest.Options{AuditObjects: jobs.AuditObjects, Nodes: j.nodes, NodeCPU: "256", NodeMemory: "1Ti", PodRunTime: j.options.RunTime}
	return options, nil
}

// parseQueues returns the queues in the order of their turns, each once.
func parseQueues(names []string, compare bool) ([]jobs.Queue, error) {
	if compare {
		names = append([]string{jobs.None}, names...)
	}
	var queues []jobs.Queue
	for _, name := range names {
		queue, err := jobs.ParseQueue(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(queues, queue) {
			queues = append(queues, queue)
		}
	}
	return queues, nil
}

// run runs all turns.
func (j *jobsRun) run(ctx context.Context, s *session) error {
	s.figures.Scenario = j.scenario
	j.options.Profile = func(ctx context.Context, turn string, programs ...*rig.Program) <-chan error {
		return s.profile(ctx, 0, profileAtMost, turn, programs...)
	}
	bench, err := jobs.New(ctx, s.Rig, j.options, s.say)
	if err != nil {
		return err
	}
	outcomes := make([]*jobs.Outcome, len(j.queues))
	for i, queue := range j.queues {
		outcomes[i] = jobs.NewOutcome(queue)
	}
	for round := range j.rounds {
		for _, outcome := range outcomes {
			s.say("round %d of %d: %s", round+1, j.rounds, outcome.Queue.Name)
			if err := bench.Turn(ctx, outcome); err != nil {
				return fmt.Errorf("%s: %w", outcome.Queue.Name, err)
			}
		}
	}
	jobs.Report(s.figures, j.options, outcomes)
	return nil
}
