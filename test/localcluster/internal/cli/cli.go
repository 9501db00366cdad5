// Package cli is the command line of localcluster.
//
// Progress and errors go to standard error, results to standard output. Exit status: 0 success,
// 1 failure or not ready, 2 invalid command line.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"kube-queue.dev/kube-queue/test/localcluster/internal/build"
	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
	"kube-queue.dev/kube-queue/test/localcluster/internal/standin"
)

// Surroundings are the inputs and outputs of a command.
type Surroundings struct {
	In       *os.File
	Out, Err io.Writer
	Getenv   func(string) string
	// Terminal reports whether Err is a terminal.
	Terminal bool
}

// System returns the surroundings of the process.
func System() Surroundings {
	info, err := os.Stderr.Stat()
	return Surroundings{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
		Terminal: err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb",
	}
}

// command is one of the commands; its name may have two words.
type command struct {
	name    string
	args    string
	summary string
	help    string
	// hidden commands are for internal use.
	hidden bool
	run    func(context.Context, *invocation) error
	// flags adds the flags of the command.
	flags func(*invocation)
}

func commands() []command {
	return []command{
		buildCommand(), upCommand(), runCommand(), downCommand(), statusCommand(), logsCommand(), operatorsCommand(),
		routeCommand(), upgradeCommand(), secondStartCommand(), secondStopCommand(),
		programStartCommand(), programStopCommand(), programKillCommand(),
		superviseCommand(),
	}
}

// usageError is an error in the command line.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// errQuiet is the error of a command that has already printed its error.
var errQuiet = errors.New("")

// errInterrupted is the cause of a context ended by a signal.
var errInterrupted = errors.New("interrupted")

// Main runs a command and returns the exit status.
func Main(args []string, world Surroundings) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	go func() {
		// Further signals are ignored: the shutdown has a time limit.
		<-signals
		cancel(errInterrupted)
	}()

	err := dispatch(ctx, args, world)
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errQuiet):
		return 1
	case errors.As(err, &usage):
		fmt.Fprintf(world.Err, "localcluster: %v\n", err)
		return 2
	default:
		fmt.Fprintf(world.Err, "localcluster: %v\n", err)
		return 1
	}
}

func dispatch(ctx context.Context, args []string, world Surroundings) error {
	if len(args) > 1 && args[0] == standin.Command {
		return standin.Run(ctx, args[1], args[2:])
	}
	if len(args) == 0 || isHelp(args[0]) {
		printCommands(world.Out)
		if len(args) == 0 {
			return usagef("no command given")
		}
		return nil
	}
	for _, c := range commands() {
		words := strings.Fields(c.name)
		if len(args) < len(words) || strings.Join(args[:len(words)], " ") != c.name {
			continue
		}
		i := newInvocation(c, world)
		help, err := i.parse(args[len(words):])
		if err != nil {
			return err
		}
		if help {
			i.printHelp(world.Out)
			return nil
		}
		return c.run(ctx, i)
	}
	var known []string
	for _, c := range commands() {
		if rest, found := strings.CutPrefix(c.name, args[0]+" "); found {
			known = append(known, rest)
		}
	}
	if len(known) > 0 {
		if len(args) > 1 && isHelp(args[1]) {
			printCommands(world.Out)
			return nil
		}
		return usagef("%s: known subcommands: %s", args[0], strings.Join(known, ", "))
	}
	return usagef("unknown command %q; known commands: %s", args[0], strings.Join(commandNames(), ", "))
}

func isHelp(arg string) bool {
	return arg == "-h" || arg == "-help" || arg == "--help" || arg == "help"
}

func commandNames() []string {
	var names []string
	for _, c := range commands() {
		if !c.hidden {
			names = append(names, c.name)
		}
	}
	return names
}

func printCommands(w io.Writer) {
	fmt.Fprint(w, `localcluster runs a real Kubernetes control plane with simulated nodes. It requires
Linux and Go, and the Go module proxy for the first build.

Usage: localcluster COMMAND [flags]

Commands:
`)
	for _, c := range commands() {
		if !c.hidden {
			fmt.Fprintf(w, "  %-14s %s\n", c.name, c.summary)
		}
	}
	fmt.Fprint(w, "\nRun 'localcluster COMMAND --help' for the flags of a command.\n")
}

// builder returns the builder of the invocation.
func (i *invocation) builder() (*build.Builder, error) {
	cache, err := build.CacheDir(i.world.Getenv)
	if err != nil {
		return nil, err
	}
	source, err := findSource(i.source)
	if err != nil {
		return nil, err
	}
	return &build.Builder{
		Source: source, Cache: cache,
		Out: i.world.Err, Terminal: i.world.Terminal,
		Starter: process.NewStarter(),
	}, nil
}
