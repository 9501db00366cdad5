package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/perf/loadgen"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

const ceilingHelp = `
Sends the writes of a QueueUnit (create, release, end) from a minimal client, without a
controller: first each kind of write for all units, then all three writes per unit. No
queue that needs these writes can be faster on the machine.`

// ceilingRun is the command ceiling.
type ceilingRun struct {
	units, inFlight int
	withoutPolicies bool
}

func (c *ceilingRun) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(&c.units, "units", 9000, "`NUMBER` of units of each part, rounded down to a multiple of 30 (one share per namespace)")
	flags.IntVar(&c.inFlight, "in-flight", inFlight, "`NUMBER` of concurrent requests")
	flags.BoolVar(&c.withoutPolicies, "without-policies", false, "run without the admission policies of kube-queue, to measure their cost")
}

func (c *ceilingRun) check() (rig.Options, error) {
	if c.units < 1 || c.inFlight < 1 {
		return rig.Options{}, errors.New("--units and --in-flight must be 1 or more")
	}
	options := apiOnly()
	options.WithoutPrograms, options.WithoutPolicies = true, c.withoutPolicies
	return options, nil
}

func (c *ceilingRun) run(ctx context.Context, s *session) error {
	profiled := s.profile(ctx, 0, profileAtMost, "ceiling")
	for _, mixed := range []bool{false, true} {
		if err := c.part(ctx, s, mixed); err != nil {
			return err
		}
	}
	return <-profiled
}

// part measures the writes with its own units.
func (c *ceilingRun) part(ctx context.Context, s *session, mixed bool) error {
	name := "apart"
	if mixed {
		name = "mixed"
	}
	scenario := loadgen.CeilingScenario(name, c.units)
	client, err := s.prepare(ctx, scenario)
	if err != nil {
		return err
	}
	defer client.Close()
	load := loadgen.NewRun(client, scenario)
	stop := s.every(load.Progress)
	defer stop()
	return load.Ceiling(ctx, mixed, c.inFlight, s.Use, s.figures)
}
