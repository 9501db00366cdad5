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

	"kube-queue.dev/kube-queue/test/localcluster/internal/standin"
)

// Surroundings are the inputs and outputs of a command.
type Surroundings struct {
	In       *os.File
	Out, Err io.Writer
}

// System returns the surroundings of the process.
func System() Surroundings {
	return Surroundings{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
}

// command is one of the commands; its name may have two words.
type command struct {
	name    string
	args    string
	summary string
	help    string
	// hidden commands are for internal use.
	hidden bool
	// flags adds the flags of the command.
	flags func(*invocation)
	run   func(context.Context, *invocation) error
}

func commands() []command {
	return append(startCommands(), manageCommands()...)
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
	if err == nil {
		return 0
	}
	if !errors.Is(err, errQuiet) {
		fmt.Fprintf(world.Err, "localcluster: %v\n", err)
	}
	var usage *usageError
	if errors.As(err, &usage) {
		return 2
	}
	return 1
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
	var known []string
	for _, c := range commands() {
		words := strings.Fields(c.name)
		if len(args) >= len(words) && strings.Join(args[:len(words)], " ") == c.name {
			i := newInvocation(c, world)
			if help, err := i.parse(args[len(words):]); help || err != nil {
				return err
			}
			return c.run(ctx, i)
		}
		if !c.hidden {
			known = append(known, c.name)
		}
	}
	return usagef("unknown command %q; known commands: %s", strings.Join(args, " "), strings.Join(known, ", "))
}

func isHelp(arg string) bool {
	return arg == "-h" || arg == "-help" || arg == "--help" || arg == "help"
}

func printCommands(w io.Writer) {
	fmt.Fprint(w, `localcluster runs a real Kubernetes control plane with simulated nodes. It requires
Linux and Go, and the Go module proxy for the first build.

Usage: localcluster COMMAND [flags]

Commands:
`)
	for _, c := range commands() {
		if !c.hidden {
			fmt.Fprintf(w, "  %-15s %s\n", c.name, c.summary)
		}
	}
	fmt.Fprint(w, "\nRun 'localcluster COMMAND --help' for the flags of a command.\n")
}
