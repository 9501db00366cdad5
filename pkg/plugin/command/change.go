package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/plugin/access"
	"kube-queue.dev/kube-queue/pkg/plugin/jobs"
)

// change holds the options of a command that changes objects.
type change struct{ access.Change }

func (o *change) add(cmd *cobra.Command) {
	values := []string{access.DryRunNone, access.DryRunClient, access.DryRunServer}
	cmd.Flags().StringVar(&o.DryRun, "dry-run", access.DryRunNone, "`WHAT` to do instead of changing anything: none (make the change), server (the API server only checks it), or client (nothing is sent). Without a value: server.")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = access.DryRunServer
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

func (o *change) check() error {
	if values := []string{access.DryRunNone, access.DryRunClient, access.DryRunServer}; !slices.Contains(values, o.DryRun) {
		return usageError{fmt.Errorf("--dry-run: unknown value %q; known values: %s", o.DryRun, strings.Join(values, ", "))}
	}
	return nil
}

// jobCommand completes a command that changes one job.
func (s *shell) jobCommand(cmd *cobra.Command, o *change, jobOf func(args []string) ([]string, error), do func(context.Context, *cluster, *access.Target) error) *cobra.Command {
	cmd.Long += "\n" + JobHelp
	cmd.Args = func(*cobra.Command, []string) error { return nil }
	cmd.ValidArgsFunction = s.completeJobs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		named, err := jobOf(args)
		if err != nil {
			return usageError{err}
		}
		ref, err := jobs.Parse(named)
		if err != nil {
			return usageError{err}
		}
		c, err := s.connect()
		if err != nil {
			return err
		}
		t, err := c.Find(cmd.Context(), ref)
		if err != nil {
			return err
		}
		if t.Unit != nil && t.Unit.Status.Phase.Ended() {
			return fmt.Errorf("%s has ended", t)
		}
		return do(cmd.Context(), c, t)
	}
	o.add(cmd)
	return cmd
}

func allArgs(args []string) ([]string, error) { return args, nil }

func (s *shell) pause() *cobra.Command {
	o, evict := &change{}, false
	cmd := &cobra.Command{
		Use:   "pause " + jobArgs,
		Short: "Keep a job from starting",
		Long: `Sets the annotation ` + wellknown.ActiveAnnotation + ` of the job to "false". The job keeps its place in the
queue, but does not start until you run kubectl kube-queue unpause. To pause a job that holds quota,
and might be running, set --evict. The job is then suspended, its pods are deleted, and it waits again.`,
		Example: `  kubectl kube-queue pause train-c
  kubectl kube-queue pause job/train-a --evict`,
	}
	cmd.Flags().BoolVar(&evict, "evict", false, "Also pause a job that holds quota, which stops it.")
	return s.jobCommand(cmd, o, allArgs, func(ctx context.Context, c *cluster, t *access.Target) error {
		return c.PauseJob(ctx, &o.Change, t, evict)
	})
}

func (s *shell) unpause() *cobra.Command {
	o := &change{}
	return s.jobCommand(&cobra.Command{
		Use:   "unpause " + jobArgs,
		Short: "Let a paused job start again when it fits",
		Long: `Sets the annotation ` + wellknown.ActiveAnnotation + ` of the job to "true", which undoes kubectl kube-queue
pause. The job is queued again in its place, and starts when its quota has room.`,
		Example: `  kubectl kube-queue unpause train-c`,
	}, o, allArgs, func(ctx context.Context, c *cluster, t *access.Target) error { return c.UnpauseJob(ctx, &o.Change, t) })
}

// formerly returns a command under its former name. The help does not show it.
func formerly(name string, cmd *cobra.Command) *cobra.Command {
	cmd.Use = strings.Replace(cmd.Use, cmd.Name(), name, 1)
	cmd.Hidden = true
	return cmd
}

func (s *shell) priority() *cobra.Command {
	o := &change{}
	var priority int32
	cmd := s.jobCommand(&cobra.Command{
		Use:        "priority " + jobArgs + " N",
		SuggestFor: []string{"bump"},
		Short:      "Set the priority of a job in its queue",
		Long: `Sets the annotation ` + wellknown.PriorityAnnotation + ` of the job. The job with the highest priority goes first in
its queue. Write a negative priority after --: kubectl kube-queue priority train-c -- -5.`,
		Example: `  kubectl kube-queue priority train-c 100`,
	}, o, func(args []string) ([]string, error) {
		if len(args) < 2 {
			return nil, fmt.Errorf("expected a job and its priority")
		}
		last := len(args) - 1
		var err error
		priority, err = access.ParsePriority(args[last])
		return args[:last], err
	}, func(ctx context.Context, c *cluster, t *access.Target) error {
		return c.SetPriority(ctx, &o.Change, t, priority)
	})
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if unknown, is := errors.AsType[*pflag.NotExistError](err); is {
			if n, bad := access.ParsePriority("-" + unknown.GetSpecifiedShortnames()); bad == nil {
				return usageError{fmt.Errorf("write a negative priority after --: -- %d", n)}
			}
		}
		return cmd.Root().FlagErrorFunc()(cmd, err)
	})
	return cmd
}

func (s *shell) stop() *cobra.Command {
	o, drain := &change{}, false
	cmd := &cobra.Command{
		Use:   "stop QUEUE",
		Short: "Stop a queue, so no more of its jobs start",
		Long: `Sets spec.stop of the Queue to Hold. No more jobs in the queue start, and running jobs continue. With --drain,
sets it to Drain. Jobs that hold quota are then also suspended and wait again.`,
		Example: `  kubectl kube-queue stop company-research
  kubectl kube-queue stop company-research --drain`,
	}
	cmd.Flags().BoolVar(&drain, "drain", false, "Also stop jobs that hold quota.")
	return s.queueCommand(cmd, o, func() v1alpha1.QueueStop {
		if drain {
			return v1alpha1.StopDrain
		}
		return v1alpha1.StopHold
	})
}

func (s *shell) resume() *cobra.Command {
	return s.queueCommand(&cobra.Command{
		Use:     "resume QUEUE",
		Short:   "Resume a stopped queue",
		Long:    `Sets spec.stop of the Queue to None, which undoes kubectl kube-queue stop.`,
		Example: `  kubectl kube-queue resume company-research`,
	}, &change{}, func() v1alpha1.QueueStop { return v1alpha1.StopNone })
}

// queueCommand completes a command that sets spec.stop of a Queue.
func (s *shell) queueCommand(cmd *cobra.Command, o *change, wanted func() v1alpha1.QueueStop) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError{errors.New("expected the name of one queue")}
		}
		return atMostOne("the name of one queue")(cmd, args)
	}
	cmd.ValidArgsFunction = s.completeQueues
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		c, err := s.connect()
		if err != nil {
			return err
		}
		return c.SetStop(cmd.Context(), &o.Change, args[0], wanted())
	}
	o.add(cmd)
	return cmd
}
