package main

import (
	"context"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/perf/loadgen"
	"kube-queue.dev/kube-queue/test/perf/pace"
	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

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
	options := apiOnly()
	options.WithoutPolicies = c.withoutPolicies
	return []part{{options, c.run}}, nil
}

func (c *ceilingRun) run(ctx context.Context, s *session) error {
	profiled := s.profile(ctx, "ceiling", 0, profileAtMost)
	apart, err := s.prepare(ctx, loadgen.Uniform("apart", ceilingLeaves, c.units))
	if err != nil {
		return err
	}
	mixed, err := s.prepare(ctx, loadgen.Uniform("mixed", ceilingLeaves, c.units))
	if err != nil {
		return err
	}
	all := func(ctx context.Context, i int) error {
		for _, write := range []func(context.Context, int) error{mixed.Create, mixed.Release, mixed.End} {
			if err := write(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
	for _, step := range []struct {
		name   string
		writes int
		do     func(context.Context, int) error
	}{
		{"create", 1, apart.Create}, {"release", 1, apart.Release}, {"end", 1, apart.End}, {"create, release and end in turn", 3, all},
	} {
		count := apart.Units()
		s.say("%s: %d units", step.name, count)
		use, took, err := s.during(ctx, func(ctx context.Context) error { return pace.Each(ctx, rig.InFlight, count, step.do) })
		if err != nil {
			return err
		}
		writes := float64(step.writes * count)
		section := s.figures.Section(step.name)
		section.Add("rate", writes/took.Seconds(), "writes/s", nil)
		for _, name := range []string{"kube-apiserver", "etcd", rig.Tool} {
			section.Add(name, report.Milliseconds(use[name].CPU)/writes, "ms a write", nil)
		}
	}
	return <-profiled
}
