package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/plugin/jobs"
)

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// fieldManager is the name of the plugin in managedFields.
const fieldManager = "kubectl-kube_queue"

// change is a command that changes objects.
type change struct{ dryRun string }

func (o *change) add(cmd *cobra.Command) {
	values := []string{dryRunNone, dryRunClient, dryRunServer}
	cmd.Flags().StringVar(&o.dryRun, "dry-run", dryRunNone, "`WHAT` to do instead of changing anything: none (make the change), server (the API server only checks it), or client (nothing is sent). Without a value: server.")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = dryRunServer
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

func (o *change) check() error {
	if values := []string{dryRunNone, dryRunClient, dryRunServer}; !slices.Contains(values, o.dryRun) {
		return usageError{fmt.Errorf("--dry-run: unknown value %q; known values: %s", o.dryRun, strings.Join(values, ", "))}
	}
	return nil
}

// options are the options of a patch.
func (o *change) options() metav1.PatchOptions {
	options := metav1.PatchOptions{FieldManager: fieldManager}
	if o.dryRun == dryRunServer {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return options
}

// tried is the end of a line about a change that was only tried.
func (o *change) tried() string {
	if o.dryRun == dryRunNone {
		return ""
	}
	return " (dry run)"
}

// jobCommand is a command that changes one job.
func (s *shell) jobCommand(cmd *cobra.Command, o *change, jobOf func(args []string) ([]string, error), do func(context.Context, *cluster, *target) error) *cobra.Command {
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
		t, err := c.find(cmd.Context(), ref)
		if err != nil {
			return err
		}
		if t.unit != nil && t.unit.Status.Phase.Ended() {
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
		Short: "Set a job aside, so that it does not start",
		Long: `Sets the annotation ` + wellknown.ActiveAnnotation + ` of the job to "false". The job keeps its place in the
queue, but does not start until you run kubectl kube-queue unpause. A job that holds quota, and might be running,
is paused only with --evict. It is then suspended, its pods are deleted, and it waits again.`,
		Example: `  kubectl kube-queue pause train-c
  kubectl kube-queue pause job/train-a --evict`,
	}
	cmd.Flags().BoolVar(&evict, "evict", false, "Also pause a job that holds quota, which stops it.")
	return s.jobCommand(cmd, o, allArgs, func(ctx context.Context, c *cluster, t *target) error { return c.pauseJob(ctx, o, t, evict) })
}

// pauseJob pauses a job. One that holds quota is only paused if evict is true.
func (c *cluster) pauseJob(ctx context.Context, o *change, t *target, evict bool) error {
	holds := t.unit != nil && t.unit.Status.Phase.HoldsQuota()
	if holds && !evict {
		return fmt.Errorf("%s holds quota and may be running: pausing it stops it and deletes its pods; repeat the command with --evict", t)
	}
	done, already := "paused", "already paused"
	if holds {
		done = "paused; it is being stopped"
	}
	return c.setActive(ctx, o, t, false, done, already)
}

func (s *shell) unpause() *cobra.Command {
	o := &change{}
	return s.jobCommand(&cobra.Command{
		Use:   "unpause " + jobArgs,
		Short: "Let a paused job start again when it fits",
		Long: `Sets the annotation ` + wellknown.ActiveAnnotation + ` of the job to "true", which undoes kubectl kube-queue
pause. The job is queued again in its place, and starts when its quota has room.`,
		Example: `  kubectl kube-queue unpause train-c`,
	}, o, allArgs, func(ctx context.Context, c *cluster, t *target) error { return c.unpauseJob(ctx, o, t) })
}

func (c *cluster) unpauseJob(ctx context.Context, o *change, t *target) error {
	if t.unit != nil && t.unit.Status.Reason == wellknown.ReasonSuspendedByUser && ptr.Deref(t.unit.Spec.Active, true) {
		return fmt.Errorf("%s is not paused: it was suspended by hand; unsuspend it, which queues it again", t)
	}
	return c.setActive(ctx, o, t, true, "unpaused: it is queued again", "not paused")
}

// formerly returns a command with the name that it had before. The help does not show it.
func formerly(name string, cmd *cobra.Command) *cobra.Command {
	cmd.Use = strings.Replace(cmd.Use, cmd.Name(), name, 1)
	cmd.Hidden = true
	return cmd
}

// setActive pauses or unpauses a job. already is the state of a job that needs no change.
func (c *cluster) setActive(ctx context.Context, o *change, t *target, active bool, done, already string) error {
	job, err := c.readJob(ctx, t)
	if err != nil {
		return err
	}
	if job == nil {
		return c.setActiveByHand(ctx, o, t, active, done, already)
	}
	value, set := job.GetAnnotations()[wellknown.ActiveAnnotation]
	is := !set || value == "true"
	if is == active && (t.unit == nil || ptr.Deref(t.unit.Spec.Active, true) == active) {
		c.say("%s is %s", t, already)
		return nil
	}
	return c.annotate(ctx, o, t, wellknown.ActiveAnnotation, strconv.FormatBool(active), done)
}

// setActiveByHand is setActive for a unit that a user has created.
func (c *cluster) setActiveByHand(ctx context.Context, o *change, t *target, active bool, done, already string) error {
	if ptr.Deref(t.unit.Spec.Active, true) == active {
		c.say("unit %s is %s", t.unit.Name, already)
		return nil
	}
	return c.patch(ctx, o, unitResource, t.unit.Namespace, t.unit.Name, map[string]any{"spec": map[string]any{"active": active}}, "unit "+t.unit.Name, done)
}

// annotate sets an annotation of a job.
func (c *cluster) annotate(ctx context.Context, o *change, t *target, key, value, done string) error {
	return c.patch(ctx, o, t.resource, c.namespace, t.job.GetName(), map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}}, t.String(), done)
}

// patch changes an object and prints that it is done. what names the object in messages.
func (c *cluster) patch(ctx context.Context, o *change, resource schema.GroupVersionResource, namespace, name string, content map[string]any, what, done string) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	if o.dryRun != dryRunClient {
		if _, err := c.dynamic.Resource(resource).Namespace(namespace).Patch(ctx, name, types.MergePatchType, data, o.options()); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	c.say("%s %s%s", what, done, o.tried())
	return nil
}

func (s *shell) priority() *cobra.Command {
	o := &change{}
	var priority int32
	return s.jobCommand(&cobra.Command{
		Use:   "priority " + jobArgs + " N",
		Short: "Set the priority of a job in its queue",
		Long: `Sets the annotation ` + wellknown.PriorityAnnotation + ` of the job. The job with the highest priority goes first in
its queue. Write a negative priority after --: kubectl kube-queue priority train-c -- -5.`,
		Example: `  kubectl kube-queue priority train-c 100`,
	}, o, func(args []string) ([]string, error) {
		if len(args) < 2 {
			return nil, fmt.Errorf("expected a job and its priority")
		}
		last := len(args) - 1
		var err error
		priority, err = parsePriority(args[last])
		return args[:last], err
	}, func(ctx context.Context, c *cluster, t *target) error { return c.setPriority(ctx, o, t, priority) })
}

func parsePriority(value string) (int32, error) {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("the priority must be an integer from -2147483648 to 2147483647, not %q", value)
	}
	return int32(n), nil
}

func (c *cluster) setPriority(ctx context.Context, o *change, t *target, priority int32) error {
	job, err := c.readJob(ctx, t)
	if err != nil {
		return err
	}
	if job == nil {
		return fmt.Errorf("unit %s was not created for a job of kube-queue, and its priority cannot be changed", t.unit.Name)
	}
	value := strconv.Itoa(int(priority))
	if t.job.GetAnnotations()[wellknown.PriorityAnnotation] == value {
		c.say("%s has priority %s already", t, value)
	} else if err := c.annotate(ctx, o, t, wellknown.PriorityAnnotation, value, "has priority "+value+was(t.unit)); err != nil {
		return err
	}
	c.warnOfCap(ctx, t.unit, priority)
	return nil
}

func was(unit *v1alpha1.QueueUnit) string {
	if unit == nil {
		return ""
	}
	return fmt.Sprintf(" (was %d)", unit.Spec.Priority)
}

// warnOfCap warns if the queue orders the unit by a lower priority.
func (c *cluster) warnOfCap(ctx context.Context, unit *v1alpha1.QueueUnit, priority int32) {
	if unit == nil || unit.Status.Queue == "" {
		return
	}
	queue, err := c.queue.SchedulingV1alpha1().Queues(c.queueNamespace).Get(ctx, unit.Status.Queue, metav1.GetOptions{})
	if err == nil && queue.Spec.MaxPriority != nil && priority > *queue.Spec.MaxPriority {
		c.warn("The maxPriority of queue %s is %d: the job is ordered as if it had this priority.", queue.Name, *queue.Spec.MaxPriority)
	}
}

func (s *shell) stop() *cobra.Command {
	o, drain := &change{}, false
	cmd := &cobra.Command{
		Use:   "stop QUEUE",
		Short: "Stop a queue, so that none of its jobs starts",
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

// stopDone is what a user is told after spec.stop of a Queue was set.
var stopDone = map[v1alpha1.QueueStop]string{
	v1alpha1.StopDrain: "stopped; jobs that hold quota are being stopped",
	v1alpha1.StopHold:  "stopped; jobs that run go on",
	v1alpha1.StopNone:  "resumed",
}

func (s *shell) resume() *cobra.Command {
	return s.queueCommand(&cobra.Command{
		Use:     "resume QUEUE",
		Short:   "Resume a stopped queue",
		Long:    `Sets spec.stop of the Queue to None, which undoes kubectl kube-queue stop.`,
		Example: `  kubectl kube-queue resume company-research`,
	}, &change{}, func() v1alpha1.QueueStop { return v1alpha1.StopNone })
}

// queueCommand is a command that sets spec.stop of a Queue.
func (s *shell) queueCommand(cmd *cobra.Command, o *change, wanted func() v1alpha1.QueueStop) *cobra.Command {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return usageError{fmt.Errorf("expected the name of one queue, not %d arguments", len(args))}
		}
		return nil
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
		return c.setStop(cmd.Context(), o, args[0], wanted())
	}
	o.add(cmd)
	return cmd
}

func (c *cluster) setStop(ctx context.Context, o *change, name string, stop v1alpha1.QueueStop) error {
	queue, err := c.queue.SchedulingV1alpha1().Queues(c.queueNamespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case isMissingObject(err):
		return c.noQueue(ctx, name)
	case err == nil && (queue.Spec.Stop == stop || queue.Spec.Stop == "" && stop == v1alpha1.StopNone):
		c.say("queue %s has spec.stop %s already", name, stop)
		return nil
	case err != nil && !apierrors.IsForbidden(err): // a caller who may not read it may still change it
		return err
	}
	err = c.patch(ctx, o, queueResource, c.queueNamespace, name, map[string]any{"spec": map[string]any{"stop": stop}}, "queue "+name, stopDone[stop])
	if isMissingObject(err) {
		return c.noQueue(ctx, name)
	}
	return err
}
