package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kube-queue.dev/kube-queue/pkg/plugin/access"
	"kube-queue.dev/kube-queue/pkg/plugin/jobs"
	"kube-queue.dev/kube-queue/pkg/plugin/render"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
)

// jobArgs names the argument of commands for one job in the help.
const jobArgs = "JOB"

// JobHelp is the paragraph of the help that explains the argument.
const JobHelp = `
JOB is the name of the job, its kind and name as in kubectl (job/train, tfjobs.kubeflow.org/train), or the
name of its QueueUnit.`

func (s *shell) why() *cobra.Command {
	o := &output{templates: true}
	cmd := &cobra.Command{
		Use:   "why " + jobArgs,
		Short: "Explain why a job waits, and what would admit it",
		Long: `Explains why a job waits: the reason, what it lacks in which quota, its position, which units are ahead of it
or hold what it lacks, and what would admit it. Units in namespaces that you cannot view are counted but not
named. AGE is the time since a job was submitted. ENDS-BEFORE is when it has run for its maximum execution time.

kube-queue-controller answers from its own state. If it does not answer, the command shows what it can find
out from the objects that you can read.
` + JobHelp,
		Example: `  kubectl kube-queue why train-c
  kubectl kube-queue why tfjob/mnist -n research
  kubectl kube-queue why job train-c -o json`,
		Args:              func(*cobra.Command, []string) error { return nil },
		ValidArgsFunction: s.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			ref, err := jobs.Parse(args)
			if err != nil {
				return usageError{err}
			}
			c, err := s.connect()
			if err != nil {
				return err
			}
			return s.repeat(cmd.Context(), o, func(ctx context.Context, to io.Writer) error { return c.explainJob(ctx, to, o, ref) })
		},
	}
	o.add(cmd, formatTable, formatJSON, formatYAML)
	o.addRefresh(cmd)
	return cmd
}

func (c *cluster) explainJob(ctx context.Context, to io.Writer, o *output, ref jobs.Reference) error {
	t, err := c.Find(ctx, ref)
	if err != nil {
		return err
	}
	if t.Unit == nil {
		return c.withoutUnit(ctx, to, o, t)
	}
	review, err := c.Answer(ctx, t)
	if err != nil {
		return err
	}
	if !o.isTable() {
		return o.object(to, review)
	}
	about := render.Subject{Namespace: t.Unit.Namespace, Unit: t.Unit.Name, Kind: t.Unit.Spec.ConsumerRef.Kind, Job: access.JobName(t.Unit), PodSets: t.Unit.Spec.PodSets}
	return render.Why(to, about, review.Status, c.view(o))
}

func (c *cluster) withoutUnit(ctx context.Context, to io.Writer, o *output, t *access.Target) error {
	why, err := c.WhyNoUnit(ctx, t.Job)
	if err != nil {
		return err
	}
	if !o.isTable() { // there is no review to write
		return fmt.Errorf("%s has no QueueUnit: %s", t, why)
	}
	fmt.Fprintf(to, "%s has no QueueUnit\n", text.Clean(t.String()))
	text.Wrap(to, "  ", why, c.style().Width)
	event, err := c.LastEvent(ctx, c.Namespace, t.Job.GetUID())
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	if event != nil {
		fmt.Fprintln(to)
		text.Wrap(to, "  ", fmt.Sprintf("Last event: %s: %s", event.Reason, event.Message), c.style().Width)
	}
	return nil
}
