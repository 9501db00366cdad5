package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/perf/jobs"
)

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

--queue can be repeated: the queues then follow each other, each on a new cluster.
--compare adds the queue none as the first one.

The queue noopqueue releases each job immediately. It is a baseline for the minimum cost
of any queue:

  go build -o bin/ ./test/perf/noopqueue
  go run ./test/perf jobs --compare --queue=label:noop=yes --with='bin/noopqueue --label=noop=yes'`

// jobsScenarios are values of flags.
var jobsScenarios = map[string]map[string]string{
	"ample":   {"jobs": "1500"},
	"waiting": {"jobs": "1500", "room": "200"},
	"steady":  {"jobs": "1200", "rate": "20"},
	"burst":   {"jobs": "10000"},
}

// jobsRun is the command jobs.
type jobsRun struct {
	flags    *pflag.FlagSet
	options  jobs.Options
	scenario string
	names    []string
	compare  bool
	// plain is the outcome without a queue, if it was measured.
	plain *jobs.Outcome
}

func (j *jobsRun) addFlags(flags *pflag.FlagSet) {
	j.flags = flags
	flags.StringVar(&j.scenario, "scenario", "ample", "`NAME` of values of --jobs, --rate and --room: "+strings.Join(slices.Sorted(maps.Keys(jobsScenarios)), ", "))
	flags.IntVar(&j.options.Jobs, "jobs", 0, "`NUMBER` of jobs")
	flags.Float64Var(&j.options.Rate, "rate", 0, "`NUMBER` of jobs created per second; 0: as fast as possible")
	flags.IntVar(&j.options.Room, "room", 0, "`NUMBER` of jobs that may run at a time in the quota of kube-queue; 0: all")
	flags.StringArrayVar(&j.names, "queue", []string{jobs.KubeQueue}, "`QUEUE` that releases the jobs: kube-queue, none or label:KEY=VALUE; can be repeated")
	flags.DurationVar(&j.options.RunTime, "run-time", time.Second, "run time of each pod, a `DURATION`")
	flags.BoolVar(&j.compare, "compare", false, "compare with jobs that are created unsuspended, without a queue")
	flags.StringArrayVar(&j.options.Apply, "apply", nil, "`FILE` with manifests for a queue label:KEY=VALUE; can be repeated")
	flags.StringArrayVar(&j.options.With, "with", nil, "`COMMAND` to run with a queue label:KEY=VALUE, with sh -c and KUBECONFIG set; can be repeated")
}

// load sets the flags of the scenario that are not in the command line.
func (j *jobsRun) load() error {
	values, known := jobsScenarios[j.scenario]
	if !known {
		return fmt.Errorf("unknown scenario %q; known scenarios: %s", j.scenario, strings.Join(slices.Sorted(maps.Keys(jobsScenarios)), ", "))
	}
	for name, value := range values {
		if flag := j.flags.Lookup(name); !flag.Changed {
			if err := flag.Value.Set(value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *jobsRun) parts() ([]part, error) {
	if err := j.load(); err != nil {
		return nil, err
	}
	if j.options.Jobs < 1 || j.options.Rate < 0 || j.options.Room < 0 || j.options.RunTime <= 0 {
		return nil, errors.New("--jobs and --run-time must be positive, and --rate and --room must not be negative")
	}
	names := j.names
	if j.compare {
		names = append([]string{jobs.None}, names...)
	}
	var parts []part
	labelled := false
	for i, name := range names {
		queue, err := jobs.ParseQueue(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(names[:i], name) {
			labelled = labelled || queue.Labelled()
			parts = append(parts, part{j.options.Rig(queue), func(ctx context.Context, s *session) error { return j.run(ctx, s, queue) }})
		}
	}
	switch {
	case labelled && len(j.options.With) == 0:
		return nil, errors.New("a queue of label:KEY=VALUE needs a program that releases its jobs: set --with")
	case !labelled && len(j.options.With)+len(j.options.Apply) > 0:
		return nil, errors.New("--with and --apply need a queue of label:KEY=VALUE: set --queue")
	}
	return parts, nil
}

// run measures one queue.
func (j *jobsRun) run(ctx context.Context, s *session, queue jobs.Queue) error {
	s.say("%s", queue.Name)
	outcome, err := jobs.Measure(ctx, s.Rig, queue, j.options, s.say, func() <-chan error {
		return s.profile(ctx, strings.NewReplacer(":", "-", "/", "-").Replace(queue.Name), 0, profileAtMost)
	})
	if err != nil {
		return err
	}
	outcome.Report(s.figures, j.plain)
	if queue.Name == jobs.None {
		j.plain = outcome
	}
	return nil
}
