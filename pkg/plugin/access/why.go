package access

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
	"kube-queue.dev/kube-queue/pkg/plugin/reviews"
)

// Answer returns why a unit waits, and which units for the growth of its job wait. kube-queue-controller does not know
// units that have ended, and may not know a new unit yet.
func (c *Cluster) Answer(ctx context.Context, t *Target) (*visibility.QueueUnitReview, error) {
	review, err := c.answer(ctx, t)
	if err != nil || review.Status == nil || t.Unit.Spec.Growth || t.Unit.Status.Growth != v1alpha1.GrowthGate || !t.Unit.Status.Phase.HoldsQuota() {
		return review, err
	}
	ref := &t.Unit.Spec.ConsumerRef
	grows, err := c.waitingGrowth(ctx, t.Unit.Namespace, ref.Kind, ref.Name, "")
	if said := review.Status.Message; said != "" && grows != "" {
		grows = said + "; " + grows
	}
	review.Status.Message = cmp.Or(grows, review.Status.Message)
	return review, err
}

func (c *Cluster) answer(ctx context.Context, t *Target) (*visibility.QueueUnitReview, error) {
	if t.Unit.Status.Phase.Ended() {
		return c.whyOfObjects(ctx, t)
	}
	review, err := c.Reviews().Unit(ctx, t.Unit.Namespace, t.Unit.Name)
	if reviews.IsUnanswered(err) != nil || reviews.IsRefused(err) != nil {
		c.WarnOnce(err)
		return c.whyOfObjects(ctx, t)
	}
	if err == nil && review.Status != nil {
		objects.AddHolding(review.Status, t.Unit)
	}
	return review, err
}

// whyOfObjects answers from the objects that the caller may read.
func (c *Cluster) whyOfObjects(ctx context.Context, t *Target) (*visibility.QueueUnitReview, error) {
	found := objects.Read{Unit: t.Unit}
	var hidden []string
	// Forbidden objects are left out. Other errors are returned.
	may := func(what string, err error) error {
		if apierrors.IsForbidden(err) {
			hidden = append(hidden, what)
			return nil
		}
		return err
	}
	if name := t.Unit.Status.Queue; name != "" {
		queue, err := c.Queue.SchedulingV1alpha1().Queues(c.QueueNamespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			found.Queue = queue
		} else if err := may("the Queue", err); err != nil && !IsMissingObject(err) {
			return nil, err
		}
	}
	if t.Unit.Status.Phase.Waits() {
		event, err := c.LastEvent(ctx, t.Unit.Namespace, t.Unit.Spec.ConsumerRef.UID)
		if event != nil && event.Reason == string(wellknown.EventControllerDown) {
			found.Down = event.Message
		} else if err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		if found.Units, err = c.AllUnits(ctx, ""); errors.Is(err, errTooMany) {
			c.warn("%v, so position and holders are missing.", err)
		} else if may("units of all namespaces", err) != nil {
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
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Unit.Namespace},
		Spec:       visibility.QueueUnitReviewSpec{Unit: t.Unit.Name},
		Status:     objects.Why(found, metav1.NewMicroTime(c.Now())),
	}, nil
}

// eventsFrom is the component that writes the events of jobs.
const eventsFrom = "job-extensions"

// LastEvent returns the last event of kube-queue on the job; nil if there is none.
func (c *Cluster) LastEvent(ctx context.Context, namespace string, job types.UID) (*corev1.Event, error) {
	list, err := c.Core.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
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
	return new(slices.MaxFunc(own, func(a, b corev1.Event) int { return eventTime(a).Compare(eventTime(b).Time) })), nil
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
