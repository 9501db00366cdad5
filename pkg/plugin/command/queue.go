package command

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/access"
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
	"kube-queue.dev/kube-queue/pkg/plugin/render"
	"kube-queue.dev/kube-queue/pkg/plugin/reviews"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
)

// mostRows is the maximum number of groups or units that are read from reviews.
const mostRows = 1000

func (s *shell) queue() *cobra.Command {
	o := &output{templates: true}
	limit := 0
	cmd := &cobra.Command{
		Use:     "queue [QUEUE]",
		Aliases: []string{"queues"},
		Short:   "List the queues, or the units of a queue in order",
		Long: `Without an argument, lists the queues. With the name of a queue, lists its units: first waiting units, in
the order in which they are tried, then units that hold quota. Units in namespaces that you cannot view are not
listed, but POSITION counts them. AGE is the time since the job was submitted, and WAITED the part of this time
before its last admission.`,
		Example: `  kubectl kube-queue queue
  kubectl kube-queue queue company-research --limit 20`,
		Args:              atMostOne("the name of one queue"),
		ValidArgsFunction: s.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if limit < 1 || limit > mostRows {
				return usageError{fmt.Errorf("--limit must be from 1 to %d, not %d", mostRows, limit)}
			}
			c, err := s.connect()
			if err != nil {
				return err
			}
			return s.repeat(cmd.Context(), o, func(ctx context.Context, to io.Writer) error {
				if len(args) == 0 {
					return c.showQueues(ctx, to, o)
				}
				return c.showQueue(ctx, to, o, args[0], limit)
			})
		},
	}
	o.add(cmd, formatTable, formatWide, formatJSON, formatYAML)
	o.addRefresh(cmd)
	cmd.Flags().IntVar(&limit, "limit", 100, "Maximum number of units to list.")
	return cmd
}

func queueReview(spec visibility.QueueReviewSpec, status *visibility.QueueReviewStatus) *visibility.QueueReview {
	return &visibility.QueueReview{
		TypeMeta: metav1.TypeMeta{APIVersion: visibility.SchemeGroupVersion.String(), Kind: "QueueReview"}, Spec: spec, Status: status}
}

func (c *cluster) showQueues(ctx context.Context, to io.Writer, o *output) error {
	spec := visibility.QueueReviewSpec{AllNamespaces: true}
	review, err := c.Reviews().Queues(ctx, c.Namespace, spec, math.MaxInt)
	if unanswered := reviews.IsUnanswered(err); unanswered != nil {
		list, listed := c.Queues(ctx)
		if listed != nil {
			return c.NoAnswer(unanswered, listed, "list Queues in namespace "+c.QueueNamespace)
		}
		c.WarnOnce(unanswered)
		review, err = queueReview(spec, objects.Queues(list, metav1.NewMicroTime(c.Now()))), nil
	}
	if err != nil {
		return err
	}
	if !o.isTable() {
		return o.object(to, review)
	}
	if len(review.Status.Queues) == 0 {
		c.warn("No queues found.")
		return nil
	}
	return render.Queues(to, review.Status.Queues, c.view(o))
}

func (c *cluster) showQueue(ctx context.Context, to io.Writer, o *output, name string, limit int) error {
	spec := visibility.QueueReviewSpec{Queue: name, AllNamespaces: true, Show: visibility.ShowUnits}
	review, err := c.Reviews().Queues(ctx, c.Namespace, spec, limit)
	if unanswered := reviews.IsUnanswered(err); unanswered != nil {
		review, err = c.queueOfObjects(ctx, spec, limit, unanswered)
	}
	if err != nil {
		return err
	}
	if !o.isTable() {
		return o.object(to, review)
	}
	if len(review.Status.Queues) == 0 && len(review.Status.Units) == 0 {
		return c.NoQueue(ctx, name)
	}
	view := c.view(o)
	if len(review.Status.Queues) > 0 {
		if err := render.Queues(to, review.Status.Queues, view); err != nil {
			return err
		}
		fmt.Fprintln(to)
	}
	view.Namespaces = true
	if len(review.Status.Units) > 0 {
		if err := render.Summaries(to, review.Status.Units, view); err != nil {
			return err
		}
	}
	if more := int(review.Status.Total) - len(review.Status.Units); more > 0 {
		fmt.Fprintf(to, "%s more; see --limit.\n", text.Count(more, "unit"))
	}
	if n := review.Status.Hidden; n > 0 {
		fmt.Fprintf(to, "%s in namespaces that you cannot view.\n", text.Count(int(n), "unit"))
	}
	return nil
}

// queueOfObjects reads the units of the queue from all namespaces. If the caller may not list them, it reads only
// those of the caller's namespace, without positions.
func (c *cluster) queueOfObjects(ctx context.Context, spec visibility.QueueReviewSpec, limit int, why error) (*visibility.QueueReview, error) {
	found, err := c.Queue.SchedulingV1alpha1().Queues(c.QueueNamespace).Get(ctx, spec.Queue, metav1.GetOptions{})
	var known []v1alpha1.Queue
	var queue *v1alpha1.Queue
	switch {
	case access.IsMissingObject(err):
		return nil, c.NoQueue(ctx, spec.Queue)
	case err == nil:
		known, queue = []v1alpha1.Queue{*found}, found
	case !apierrors.IsForbidden(err):
		return nil, err
	}
	hidden := err != nil
	list, err := c.AllUnits(ctx, "")
	complete := err == nil
	if apierrors.IsForbidden(err) {
		list, err = c.AllUnits(ctx, c.Namespace)
	}
	if err != nil {
		return nil, c.NoAnswer(why, err, "list QueueUnits")
	}
	c.WarnOnce(why)
	if !complete {
		c.warn("You may not list units of all namespaces: only those of namespace %s are shown, without their positions.", c.Namespace)
	}
	status := objects.Queues(known, metav1.NewMicroTime(c.Now()))
	objects.Order(status, list, spec.Queue, queue, complete, limit)
	if hidden && len(status.Units) == 0 {
		return nil, fmt.Errorf("you may not read Queues in namespace %s, and none of the units that you may list is in queue %q", c.QueueNamespace, spec.Queue)
	}
	return queueReview(spec, status), nil
}
