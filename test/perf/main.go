// Command perf measures kube-queue on a local control plane, and the API server alone.
//
//	go run ./test/perf units --scenario=baseline
//
// Every command starts its own cluster, prints its figures as a table and, with --json,
// writes them to a file. Everything runs on one machine, and the figures are only valid for
// that machine without other load.
package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

func main() {
	// The first signal stops the run gracefully, the second one immediately.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if command().ExecuteContext(ctx) != nil {
		os.Exit(1)
	}
}

// measurement is what a command does. Some have a method addFlags.
type measurement interface {
	// parts validates the flags.
	parts() ([]part, error)
}

// part is a part of a measurement, with a cluster of its own.
type part struct {
	options rig.Options
	// run adds the figures.
	run func(context.Context, *session) error
}

func command() *cobra.Command {
	root := &cobra.Command{Use: "perf", Short: "measure kube-queue on a local control plane"}
	root.CompletionOptions.DisableDefaultCmd = true
	for _, c := range []struct {
		name, summary, help string
		measurement
	}{
		{"units", "measure kube-queue-controller with QueueUnits of simulated jobs", unitsHelp, &unitsRun{}},
		{"jobs", "measure batch Jobs on a complete cluster: completions, delays and writes, with any queue or none", jobsHelp, &jobsRun{}},
		{"pods", "measure kube-queue-controller in a cluster with many pods", podsHelp, &podsRun{changes: 5_000, idle: time.Minute}},
		{"names", "measure what is left of units with ever new names of resources", namesHelp, &namesRun{units: 10_000, names: 8, rounds: 10, patience: 6 * time.Minute, rest: time.Minute}},
		{"reviews", "measure reviews, the kubectl plugin, and releases meanwhile", reviewsHelp, &reviewsRun{units: 100_000, nodes: 1_000, rounds: 3, during: 20 * time.Second, rate: 20}},
		{"ceiling", "measure the throughput of the API server: the same writes from a minimal client", ceilingHelp, &ceilingRun{units: 9000}},
	} {
		cmd := &cobra.Command{Use: c.name, Short: c.summary, Long: strings.TrimSpace(c.help), Args: cobra.NoArgs}
		cmd.Flags().SortFlags = false
		if c, has := c.measurement.(interface{ addFlags(*pflag.FlagSet) }); has {
			c.addFlags(cmd.Flags())
		}
		pprof := cmd.Flags().String("pprof", "", "`DIR` for profiles of the programs and the API server; profiling takes time")
		file := cmd.Flags().String("json", "", "also write the figures to `FILE` as JSON")
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			parts, err := c.parts()
			if err != nil {
				return err
			}
			cmd.SilenceUsage = true
			return measure(cmd, parts, *pprof, *file)
		}
		root.AddCommand(cmd)
	}
	return root
}

// measure runs all parts and shows their figures.
func measure(cmd *cobra.Command, parts []part, pprof, file string) error {
	line := cmd.Name()
	cmd.Flags().Visit(func(f *pflag.Flag) { line += " --" + f.Name + "=" + f.Value.String() })
	s := &session{pprof: pprof, progress: cmd.ErrOrStderr(), figures: report.New(line)}
	s.figures.Version = version(cmd.Context())
	for _, p := range parts {
		if err := s.measure(cmd.Context(), p); err != nil {
			return err
		}
	}
	if err := s.figures.Print(cmd.OutOrStdout()); err != nil || file == "" {
		return err
	}
	return s.figures.WriteFile(file)
}
