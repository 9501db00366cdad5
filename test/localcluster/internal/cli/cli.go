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
	"syscall"

	"github.com/spf13/cobra"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
	"kube-queue.dev/kube-queue/test/localcluster/internal/standin"
)

// Surroundings are the inputs and outputs of a command.
type Surroundings struct {
	In       *os.File
	Out, Err io.Writer
}

// usageError is an error in the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

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
	if _, is := errors.AsType[usageError](err); is {
		return 2
	}
	return 1
}

func dispatch(ctx context.Context, args []string, world Surroundings) error {
	if len(args) > 1 && args[0] == standin.Command {
		return standin.Run(ctx, args[1], args[2:])
	}
	i := newInvocation(world)
	root := i.commands()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !i.began {
		return usageError{err}
	}
	return err
}

// commands returns all commands, with the flags of the invocation.
func (i *invocation) commands() *cobra.Command {
	root := &cobra.Command{
		Use: "localcluster",
		Long: `localcluster runs a real Kubernetes control plane with simulated nodes. It requires
Linux and Go, and the Go module proxy for the first build.`,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRunE: i.begin,
	}
	root.SetOut(i.world.Out)
	root.SetErr(i.world.Err)
	root.AddCommand(i.startCommands()...)
	root.AddCommand(i.manageCommands()...)
	return root
}

// begin checks the flags of a command before it runs.
func (i *invocation) begin(c *cobra.Command, args []string) (err error) {
	if c.Flags().Lookup("kubernetes") != nil {
		if err := i.config.Validate(); err != nil {
			return err
		}
	}
	if err := c.ValidateRequiredFlags(); err != nil {
		return err
	}
	if i.folder, err = cluster.OpenFolder(i.data); err != nil {
		return err
	}
	i.args, i.began = args, true
	return nil
}
