// Package command has the commands of the kubectl plugin "kubectl kube-queue". Each command reads with the permissions
// of the caller, and writes one line for each change.
//
// The plugin asks kube-queue-controller, with reviews, what waits and why. If the controller does not answer, the
// plugin says so on standard error, and computes the answer from the objects that the caller may read. In either case,
// package render writes the output. list reads objects, because -o json and -o name show them. Changes are patches of
// jobs and Queues with the permissions of the caller, never reviews.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"kube-queue.dev/kube-queue/pkg/plugin/convert"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
	"kube-queue.dev/kube-queue/pkg/program/identity"
	"kube-queue.dev/kube-queue/pkg/program/usage"
)

// display is the command that users type.
const display = "kubectl kube-queue"

// Exit statuses.
const (
	exitClean = 0
	// exitError is the status of a failed command. simulate and convert have their own.
	exitError = 1
	// exitNegative is the status of simulate if something would wait or is invalid, and exitSimulate its status after an
	// error, as in kubectl diff.
	exitNegative = 1
	exitSimulate = 2
	// exitInterrupted is the status after Ctrl-C.
	exitInterrupted = 130
)

// Environment is what the plugin is started with.
type Environment struct {
	Streams genericiooptions.IOStreams
	// Terminal is true if standard output is a terminal. Width is the number of characters in its lines.
	Terminal bool
	Width    int
	// NoColour turns colours off.
	NoColour bool
	Now      func() time.Time
	// Wait waits for the duration, and returns false if the context ends earlier.
	Wait func(context.Context, time.Duration) bool
	// Browse opens a link in the user's browser; nil if there is none.
	Browse func(link string) error
}

// shell is what all commands share.
type shell struct {
	Environment
	flags *genericclioptions.ConfigFlags
	// queueNamespace is the namespace of the Queues.
	queueNamespace string
}

// usageError is an error in the command line.
type usageError struct{ error }

// verdict is the exit status of a command that has printed everything.
type verdict int

func (verdict) Error() string { return "the result is negative" }

// Run runs the plugin and returns its exit status.
func Run(ctx context.Context, env Environment, args []string) int {
	cmd := New(env)
	cmd.SetArgs(args)
	executed, err := cmd.ExecuteContextC(ctx)
	return conclude(ctx, env.Streams.ErrOut, executed, err)
}

// conclude prints the error of a command and returns the exit status.
func conclude(ctx context.Context, out io.Writer, executed *cobra.Command, err error) int {
	failed := exitError
	if executed.Name() == simulateName {
		failed = exitSimulate
	}
	var wrong usageError
	var result verdict
	var converted *convert.StatusError
	switch {
	case err == nil:
		return exitClean
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.As(err, &result):
		return int(result)
	case errors.As(err, &converted):
		for line := range strings.Lines(converted.Error()) { // a fault each
			fmt.Fprintf(out, "error: %s\n", text.Clean(strings.TrimSuffix(line, "\n")))
		}
		return converted.ExitStatus()
	case errors.As(err, &wrong):
		usage.Print(out, executed.CommandPath(), wrong.error, executed.Flags())
	default:
		fmt.Fprintf(out, "error: %s\n", text.Clean(explain(err)))
	}
	return failed
}

// New returns the command with all its subcommands.
func New(env Environment) *cobra.Command {
	s := &shell{Environment: env, flags: genericclioptions.NewConfigFlags(true)}
	cmd := &cobra.Command{
		Use:   "kubectl-kube_queue",
		Short: "Show the queue, explain why jobs wait, and pause, unpause or order them",
		Long: `Shows the jobs that wait for quota or hold it, explains why a job waits, which jobs hold the quota and what
would admit it, and pauses, unpauses and orders jobs. All commands use your rights.

Accepts all flags of kubectl that select a cluster, a user and a namespace; see kubectl options.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: display},
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			hint := ""
			if meant := cmd.SuggestionsFor(args[0]); len(meant) > 0 {
				hint = fmt.Sprintf("; did you mean %q?", meant[0])
			}
			return usageError{fmt.Errorf("unknown command %q%s", args[0], hint)}
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetUsageTemplate(strings.ReplaceAll(cmd.UsageTemplate(), ".FlagUsages ", ".FlagUsagesWrapped 100 "))
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if text, _, is := strings.Cut(err.Error(), ": strconv."); is { // what follows is for programmers
			err = errors.New(text)
		}
		return usageError{err}
	})
	cmd.SetIn(env.Streams.In)
	cmd.SetOut(env.Streams.Out)
	cmd.SetErr(env.Streams.ErrOut)
	cmd.SuggestionsMinimumDistance = 2
	s.flags.AddFlags(cmd.PersistentFlags())
	hideAllBut(cmd.PersistentFlags(), "namespace", "context", "kubeconfig", "as", "as-group", "request-timeout")
	cmd.PersistentFlags().StringVar(&s.queueNamespace, "queue-namespace", "kube-queue", "Namespace of the Queues, which is that of kube-queue.")
	cmd.AddCommand(s.list(), s.tree(), s.queue(), s.why(), s.pause(), s.unpause(), formerly("hold", s.pause()), formerly("release", s.unpause()), s.priority(), s.stop(), s.resume(), s.simulate(), s.advise(), s.web(), s.mcp(), convert.NewCommand(env.Streams), s.version())
	s.addCompletion(cmd)
	return cmd
}

// hideAllBut hides all other flags from the help. With all flags of kubectl, it would be hard to read.
func hideAllBut(flags *pflag.FlagSet, shown ...string) {
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shown, f.Name) })
}

func programVersion() string { return identity.Version() }

// style returns what the standard output can show.
func (s *shell) style() text.Style {
	if !s.Terminal {
		return text.Style{}
	}
	return text.Style{Width: s.Width, Colour: !s.NoColour, Bars: true}
}

// say writes a line to standard output, and warn writes one to standard error.
func (s *shell) say(format string, args ...any) {
	fmt.Fprintln(s.Streams.Out, text.Clean(fmt.Sprintf(format, args...)))
}

func (s *shell) warn(format string, args ...any) {
	fmt.Fprintln(s.Streams.ErrOut, text.Clean(fmt.Sprintf(format, args...)))
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q", args[0])}
	}
	return nil
}

// atMostOne accepts at most one argument. what describes it in messages.
func atMostOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usageError{fmt.Errorf("expected %s, not %d arguments", what, len(args))}
		}
		if slices.Contains(args, "") { // such as a variable that is not set
			return usageError{fmt.Errorf("expected %s, not \"\"", what)}
		}
		return nil
	}
}
