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
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

func main() {
	// The first signal stops the run gracefully, the second one immediately.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], world{out: os.Stdout, err: os.Stderr}))
}

// world has the output of a command: figures go to out, progress and errors to err.
type world struct{ out, err io.Writer }

// command is a command of perf.
type command struct {
	name, summary, help string
	measurement
}

// measurement is what a command does.
type measurement interface {
	addFlags(*pflag.FlagSet)
	// check validates the flags and returns the options of the rig.
	check() (rig.Options, error)
	// run adds the figures.
	run(context.Context, *session) error
}

func commands() []command {
	return []command{
		{"units", "measure kube-queue-controller with QueueUnits of simulated jobs", unitsHelp, &unitsRun{}},
		{"jobs", "measure batch Jobs on a complete cluster: completions, delays and writes, with any queue or none", jobsHelp, &jobsRun{}},
		{"pods", "measure kube-queue-controller in a cluster with many pods", podsHelp, &podsRun{}},
		{"names", "measure what is left of units with ever new names of resources", namesHelp, &namesRun{}},
		{"reviews", "measure reviews, the kubectl plugin, and releases meanwhile", reviewsHelp, &reviewsRun{}},
		{"ceiling", "measure the throughput of the API server: the same writes from a minimal client", ceilingHelp, &ceilingRun{}},
	}
}

// errUsage is an error in the command line.
var errUsage = errors.New("wrong command line")

func run(ctx context.Context, args []string, w world) int {
	err := dispatch(ctx, args, w)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintln(w.err, strings.TrimPrefix(err.Error(), errUsage.Error()+": "))
		return 2
	case ctx.Err() != nil:
		fmt.Fprintln(w.err, "interrupted:", err)
	default:
		fmt.Fprintln(w.err, err)
	}
	return 1
}

func dispatch(ctx context.Context, args []string, w world) error {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
		if len(args) > 0 && args[0] == c.name {
			return execute(ctx, c, args[1:], w)
		}
	}
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" || args[0] == "help" {
		fmt.Fprint(w.out, "perf measures kube-queue on a local control plane.\n\nCommands (run with --help for their flags):\n")
		for _, c := range commands() {
			fmt.Fprintf(w.out, "  %-8s %s\n", c.name, c.summary)
		}
		return nil
	}
	return fmt.Errorf("%w: unknown command %q; known commands: %s", errUsage, args[0], strings.Join(names, ", "))
}

// execute runs a command and shows its figures.
func execute(ctx context.Context, c command, args []string, w world) error {
	flags := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() {}
	c.addFlags(flags)
	pprof := flags.String("pprof", "", "`DIR` for profiles of the programs, the API server and this tool; profiling takes time")
	keep := flags.Bool("keep", false, "keep the logs of the cluster and the programs and print their folder")
	file := flags.String("json", "", "also write the figures to `FILE` as JSON")
	if err := flags.Parse(args); errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintf(w.out, "perf %s: %s\n\n%s\n\nFlags:\n%s", c.name, c.summary, strings.TrimSpace(c.help), flags.FlagUsages())
		return nil
	} else if err != nil {
		return fmt.Errorf("%w: %s: %w; see perf %s --help", errUsage, c.name, err, c.name)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%w: %s: unexpected argument %q", errUsage, c.name, flags.Arg(0))
	}
	options, err := c.check()
	if err != nil {
		return fmt.Errorf("%w: %s: %w", errUsage, c.name, err)
	}
	options.Log, options.Profiling = w.err, options.Profiling || *pprof != ""
	s := &session{pprof: *pprof, progress: w.err, figures: report.New(c.name)}
	if err := s.measure(ctx, options, *keep, c.run); err != nil {
		return err
	}
	flags.Visit(func(f *pflag.Flag) { s.figures.Flags = append(s.figures.Flags, "--"+f.Name+"="+f.Value.String()) })
	if err := s.figures.Print(w.out); err != nil {
		return err
	}
	if *file != "" {
		return s.figures.WriteFile(*file)
	}
	return nil
}
