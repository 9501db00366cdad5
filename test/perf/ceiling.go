package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/perf/loadgen"
	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

const ceilingHelp = `
Sends the writes of a QueueUnit (create, release, end) from a minimal client, without a
controller: first each kind of write for all units, then all three writes per unit. No
queue that needs these writes can be faster on the machine.`

// ceilingFlags are the flags of the command ceiling.
type ceilingFlags struct {
	units, inFlight       int
	withoutPolicies, keep bool
	pprof                 string
}

func ceilingCommand() command {
	return command{
		name: "ceiling", summary: "measure the throughput of the API server: the same writes from a minimal client", help: ceilingHelp,
		prepare: func(flags *pflag.FlagSet) measure {
			f := &ceilingFlags{}
			flags.IntVar(&f.units, "units", 9000, "`NUMBER` of units of each part, rounded down to a multiple of 30 (one share per namespace)")
			flags.IntVar(&f.inFlight, "in-flight", 32, "`NUMBER` of concurrent requests")
			flags.BoolVar(&f.withoutPolicies, "without-policies", false, "run without the admission policies of kube-queue, to measure their cost")
			flags.StringVar(&f.pprof, "pprof", "", "`DIR` for profiles of the API server and of this tool")
			flags.BoolVar(&f.keep, "keep", false, "keep the logs of the cluster and print their folder")
			return f.measure
		},
	}
}

func (f *ceilingFlags) measure(ctx context.Context, progress io.Writer) (*report.Report, error) {
	for name, number := range map[string]int{"units": f.units, "in-flight": f.inFlight} {
		if number < 1 {
			return nil, fmt.Errorf("%w: ceiling: --%s %d: must be 1 or more", errUsage, name, number)
		}
	}
	return withRig(ctx, rig.Options{OnlyAPI: true, WithoutPrograms: true, WithoutPolicies: f.withoutPolicies, Log: progress}, f.keep, progress,
		func(ctx context.Context, r *rig.Rig) (*report.Report, error) { return f.run(ctx, r, progress) })
}

func (f *ceilingFlags) run(ctx context.Context, r *rig.Rig, progress io.Writer) (figures *report.Report, err error) {
	config, _, err := r.Cluster.ServiceAccountConfig(ctx, rig.Extensions)
	if err != nil {
		return nil, err
	}
	client, err := loadgen.NewClient(config, loadgen.Agent)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	stopProfile, err := profileTool(f.pprof)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stopProfile()) }()
	figures = report.New("ceiling", "", r.Version, nil)
	if f.pprof != "" {
		server := profileServer(ctx, r, profileAtMost, f.pprof, "ceiling")
		defer func() { err = errors.Join(err, <-server) }()
	}
	if err := f.part(ctx, r, client, "apart", false, figures, progress); err != nil {
		return nil, err
	}
	if err := f.part(ctx, r, client, "mixed", true, figures, progress); err != nil {
		return nil, err
	}
	return figures, nil
}

// part measures the writes with its own units.
func (f *ceilingFlags) part(ctx context.Context, r *rig.Rig, client *loadgen.Client, name string, mixed bool, figures *report.Report, progress io.Writer) error {
	s := loadgen.CeilingScenario(name, f.units)
	if err := r.MakeNamespaces(ctx, s.Namespaces()); err != nil {
		return err
	}
	stage, err := loadgen.NewRun(client, s)
	if err != nil {
		return err
	}
	stop := every(progressPeriod, func() { fmt.Fprintf(progress, "%s: %s\n", name, stage.Progress()) })
	defer stop()
	return stage.Ceiling(ctx, mixed, f.inFlight, r.Use, figures)
}
