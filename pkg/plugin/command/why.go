package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/jobs"
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
	"kube-queue.dev/kube-queue/pkg/plugin/render"
	"kube-queue.dev/kube-queue/pkg/plugin/reviews"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
)

// jobArgs is how the help names the argument of commands for one job.
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
or hold what it lacks, and what would admit it. Units in namespaces that you cannot read are counted but not
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

// explainJob writes why a job waits.
func (c *cluster) explainJob(ctx context.Context, to io.Writer, o *output, ref jobs.Reference) error {
	t, err := c.find(ctx, ref)
	if err != nil {
		return err
	}
	if t.unit == nil {
		return c.withoutUnit(ctx, to, t)
	}
	review, err := c.answer(ctx, t)
	if err != nil {
		return err
	}
	if !o.isTable() {
		return o.object(to, review)
	}
	about := render.Subject{Namespace: t.unit.Namespace, Unit: t.unit.Name, Kind: t.unit.Spec.ConsumerRef.Kind, Job: t.unit.Spec.ConsumerRef.Name, PodSets: t.unit.Spec.PodSets}
	return render.Why(to, about, review.Status, c.view(o))
}

// answer asks why a unit waits. kube-queue-controller does not know a unit that has ended, and may not know one that
// was just created.
func (c *cluster) answer(ctx context.Context, t *target) (*visibility.QueueUnitReview, error) {
	if t.unit.Status.Phase.Ended() {
		return c.whyOfObjects(ctx, t)
	}
	review, err := c.reviews().Unit(ctx, t.unit.Namespace, t.unit.Name)
	if reviews.IsUnanswered(err) != nil || reviews.IsRefused(err) != nil {
		c.warnOnce(err)
		return c.whyOfObjects(ctx, t)
	}
	if err == nil && review.Status != nil {
		objects.AddHolding(review.Status, t.unit)
	}
	return review, err
}

// whyOfObjects reads what the caller may read.
func (c *cluster) whyOfObjects(ctx context.Context, t *target) (*visibility.QueueUnitReview, error) {
	found := objects.Read{Unit: t.unit}
	var hidden []string
	// What the caller may not read is not shown. All other errors are reported.
	may := func(what string, err error) error {
		if apierrors.IsForbidden(err) {
			hidden = append(hidden, what)
			return nil
		}
		return err
	}
	if name := t.unit.Status.Queue; name != "" {
		queue, err := c.queue.SchedulingV1alpha1().Queues(c.queueNamespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			found.Queue = queue
		} else if err := may("the Queue", err); err != nil && !isMissingObject(err) {
			return nil, err
		}
	}
	if t.unit.Status.Phase.Waits() {
		event, err := c.lastEvent(ctx, t.unit.Namespace, t.unit.Spec.ConsumerRef.UID)
		if event != nil && event.Reason == string(wellknown.EventControllerDown) {
			found.Down = event.Message
		} else if err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		if found.Units, err = c.allUnits(ctx, ""); may("units of all namespaces", err) != nil {
			return nil, err
		}
		quotas, _, err := c.readTree(ctx)
		if err == nil {
			found.Quotas = quotas
		} else if err := may("the quota tree", err); err != nil && err != errNoTree && !reviews.IsNotServed(err) {
			return nil, err
		}
	}
	if len(hidden) > 0 {
		c.warn("You may not read %s, so position and holders may be missing.", strings.Join(hidden, ", "))
	}
	return &visibility.QueueUnitReview{
		TypeMeta:   metav1.TypeMeta{APIVersion: visibility.SchemeGroupVersion.String(), Kind: "QueueUnitReview"},
		ObjectMeta: metav1.ObjectMeta{Namespace: t.unit.Namespace},
		Spec:       visibility.QueueUnitReviewSpec{Unit: t.unit.Name},
		Status:     objects.Why(found, metav1.NewMicroTime(c.Now())),
	}, nil
}

// withoutUnit explains why a job has no unit.
func (c *cluster) withoutUnit(ctx context.Context, to io.Writer, t *target) error {
	why, err := whyNoUnit(t.job)
	if err != nil {
		return err
	}
	fmt.Fprintf(to, "%s has no QueueUnit\n", text.Clean(t.String()))
	text.Wrap(to, "  ", why, c.style().Width)
	event, err := c.lastEvent(ctx, c.namespace, t.job.GetUID())
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	if event != nil {
		fmt.Fprintln(to)
		text.Wrap(to, "  ", fmt.Sprintf("Last event: %s: %s", event.Reason, event.Message), c.style().Width)
	}
	return nil
}

// eventsFrom is the program that reports on jobs.
const eventsFrom = "job-extensions"

// lastEvent returns the last event of kube-queue on the job; nil if there is none.
func (c *cluster) lastEvent(ctx context.Context, namespace string, job types.UID) (*corev1.Event, error) {
	list, err := c.core.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(job)).String()})
	if err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		return e.Source.Component != eventsFrom && e.ReportingController != eventsFrom
	})
	if len(own) == 0 {
		return nil, nil
	}
	last := slices.MaxFunc(own, func(a, b corev1.Event) int { return eventTime(a).Compare(eventTime(b).Time) })
	return &last, nil
}

func eventTime(e corev1.Event) metav1.Time {
	switch {
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case e.Series != nil:
		return metav1.Time{Time: e.Series.LastObservedTime.Time}
	default:
		return metav1.Time{Time: e.EventTime.Time}
	}
}
