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
	"time"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/perf/report"
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
	// prepare adds the command's flags and returns its measurement.
	prepare func(*pflag.FlagSet) measure
}

// measure runs a measurement and returns its figures.
type measure func(ctx context.Context, progress io.Writer) (*report.Report, error)

func commands() []command {
	return []command{unitsCommand(), jobsCommand(), podsCommand(), namesCommand(), reviewsCommand(), ceilingCommand()}
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
	measure := c.prepare(flags)
	file := flags.String("json", "", "also write the figures to `FILE` as JSON")
	enforce := flags.Bool("enforce", false, "exit with status 1 if a bar is not met")
	if err := flags.Parse(args); errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintf(w.out, "perf %s: %s\n\n%s\n\nFlags:\n%s", c.name, c.summary, strings.TrimSpace(c.help), flags.FlagUsages())
		return nil
	} else if err != nil {
		return fmt.Errorf("%w: %s: %w; see perf %s --help", errUsage, c.name, err, c.name)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%w: %s: unexpected argument %q", errUsage, c.name, flags.Arg(0))
	}
	figures, err := measure(ctx, w.err)
	if err != nil {
		return err
	}
	figures.Flags = given(flags)
	if err := figures.Print(w.out); err != nil {
		return err
	}
	if *file != "" {
		if err := figures.WriteFile(*file); err != nil {
			return err
		}
	}
	if missed := figures.Missed(); *enforce && len(missed) > 0 {
		return fmt.Errorf("bars not met:\n  %s", strings.Join(missed, "\n  "))
	}
	return nil
}

// given returns the flags that were set, as on the command line.
func given(flags *pflag.FlagSet) []string {
	set := []string{}
	flags.Visit(func(f *pflag.Flag) { set = append(set, "--"+f.Name+"="+f.Value.String()) })
	return set
}

// every calls show periodically until the returned function is called.
func every(period time.Duration, show func()) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				show()
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
