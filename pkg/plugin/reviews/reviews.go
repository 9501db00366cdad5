// Package reviews asks kube-queue-controller questions that it answers from its own state. A review is created with
// dryRun=All, so nothing is stored.
package reviews

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/clientset"
)

// Unanswered means that the controller does not answer, so the answer must come from the objects.
type Unanswered struct {
	// Why is a part of a sentence: "kube-queue-controller does not answer".
	Why string
	Err error
}

func (u *Unanswered) Error() string {
	return u.Why
}

func (u *Unanswered) Unwrap() error { return u.Err }

// ErrMayNotAsk means that the caller may not create reviews in the namespace.
var ErrMayNotAsk = errors.New("the caller may not ask")

// Refused means that kube-queue-controller refuses to answer, and says why.
type Refused struct {
	Why string
	Err error
}

func (r *Refused) Error() string { return r.Why }

func (r *Refused) Unwrap() error { return r.Err }

// Missing returns the error about an object that does not exist. apierrors.IsNotFound recognizes it.
func Missing(name, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: message, Details: &metav1.StatusDetails{Name: name}}}
}

// IsRefused returns the error as a *Refused; nil if it is another error.
func IsRefused(err error) *Refused {
	r, _ := errors.AsType[*Refused](err)
	return r
}

// IsUnanswered returns the error as an *Unanswered; nil if it is another error.
func IsUnanswered(err error) *Unanswered {
	u, _ := errors.AsType[*Unanswered](err)
	return u
}

// Asker asks with the permissions of the caller.
type Asker struct {
	Client *clientset.Visibility
}

// named lets the API server generate the name of a review. The name is not used.
func named(namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, GenerateName: "review-"}
}

func dryRun() metav1.CreateOptions { return metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}} }

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: visibility.SchemeGroupVersion.String(), Kind: kind}
}

// Unit asks why a unit waits.
func (a Asker) Unit(ctx context.Context, namespace, unit string) (*visibility.QueueUnitReview, error) {
	return a.unit(ctx, namespace, visibility.QueueUnitReviewSpec{Unit: unit})
}

// NewUnit asks what would happen to a unit that does not exist.
func (a Asker) NewUnit(ctx context.Context, namespace string, unit *v1alpha1.QueueUnitSpec) (*visibility.QueueUnitReview, error) {
	review, err := a.unit(ctx, namespace, visibility.QueueUnitReviewSpec{NewUnit: unit})
	if refused := IsRefused(err); refused != nil && strings.HasPrefix(refused.Why, `QueueUnit "" does not exist`) {
		return nil, &Unanswered{"the kube-queue of this cluster is older than this plugin and does not know new units", err}
	}
	return review, err
}

func (a Asker) unit(ctx context.Context, namespace string, spec visibility.QueueUnitReviewSpec) (*visibility.QueueUnitReview, error) {
	review, err := a.Client.QueueUnitReviews(namespace).Create(ctx, &visibility.QueueUnitReview{ObjectMeta: named(namespace), Spec: spec}, dryRun())
	if err = check(err, err == nil && review.Status != nil, "queueunitreviews", namespace); err != nil {
		return nil, err
	}
	review.TypeMeta = typeOf("QueueUnitReview")
	return review, nil
}

// Queues asks for up to most entries about queues, in pages. The queues can change between two pages.
func (a Asker) Queues(ctx context.Context, namespace string, spec visibility.QueueReviewSpec, most int) (*visibility.QueueReview, error) {
	var all *visibility.QueueReview
	for listed := 0; ; {
		spec.Limit, spec.Offset = int32(min(most-listed, visibility.DefaultLimit)), int32(listed)
		page, err := a.QueuePage(ctx, namespace, spec)
		if err != nil {
			return nil, err
		}
		switch {
		case all == nil:
			all = page
		case spec.Show == visibility.ShowGroups:
			all.Status.Groups = append(all.Status.Groups, page.Status.Groups...)
		case spec.Show == visibility.ShowUnits:
			all.Status.Units = append(all.Status.Units, page.Status.Units...)
		default:
			all.Status.Queues = append(all.Status.Queues, page.Status.Queues...)
		}
		before := listed
		if listed = entries(all.Status, spec.Show); listed == before || listed >= min(most, int(page.Status.Total)) {
			return all, nil
		}
	}
}

func entries(status *visibility.QueueReviewStatus, show visibility.QueueReviewContent) int {
	switch show {
	case visibility.ShowGroups:
		return len(status.Groups)
	case visibility.ShowUnits:
		return len(status.Units)
	default:
		return len(status.Queues)
	}
}

// QueuePage asks for one page.
func (a Asker) QueuePage(ctx context.Context, namespace string, spec visibility.QueueReviewSpec) (*visibility.QueueReview, error) {
	review, err := a.Client.QueueReviews(namespace).Create(ctx, &visibility.QueueReview{ObjectMeta: named(namespace), Spec: spec}, dryRun())
	if err = check(err, err == nil && review.Status != nil, "queuereviews", namespace); err != nil {
		return nil, err
	}
	review.TypeMeta = typeOf("QueueReview")
	return review, nil
}

// Quotas asks how quotas are used, in pages. The quotas can change between two pages.
func (a Asker) Quotas(ctx context.Context, namespace, quota string) (*visibility.QuotaReview, error) {
	var all *visibility.QuotaReview
	for {
		spec := visibility.QuotaReviewSpec{Quota: quota}
		if all != nil {
			spec.Offset = int32(len(all.Status.Quotas))
		}
		page, err := a.quotas(ctx, namespace, spec)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = page
		} else {
			all.Status.Quotas = append(all.Status.Quotas, page.Status.Quotas...)
		}
		if len(page.Status.Quotas) == 0 || len(all.Status.Quotas) >= int(page.Status.Total) {
			return all, nil
		}
	}
}

func (a Asker) quotas(ctx context.Context, namespace string, spec visibility.QuotaReviewSpec) (*visibility.QuotaReview, error) {
	review, err := a.Client.QuotaReviews(namespace).Create(ctx, &visibility.QuotaReview{ObjectMeta: named(namespace), Spec: spec}, dryRun())
	if err = check(err, err == nil && review.Status != nil, "quotareviews", namespace); err != nil {
		return nil, err
	}
	review.TypeMeta = typeOf("QuotaReview")
	return review, nil
}

// denied precedes the message of a webhook that denies a request.
const denied = "denied the request: "

// check tells answers, unanswered questions and other errors apart.
func check(err error, answered bool, resource, namespace string) error {
	status := apierrors.APIStatus(nil)
	switch {
	case err == nil && answered:
		return nil
	case err == nil:
		return &Unanswered{"kube-queue-controller does not answer", err}
	case apierrors.IsInvalid(err) && (strings.Contains(err.Error(), "nothing has answered") || strings.Contains(err.Error(), "status.observedTime")):
		return &Unanswered{"reviews are off in this cluster", err}
	case IsNotServed(err):
		return &Unanswered{"kube-queue is not installed in this cluster, or is too old for this plugin: an administrator must install or upgrade it", err}
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource"):
		return &Unanswered{fmt.Sprintf("you may not create %s in namespace %q", resource, namespace), errors.Join(err, ErrMayNotAsk)}
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "has just started"):
		return &Unanswered{"kube-queue-controller has just started", err}
	case apierrors.IsForbidden(err) && (strings.Contains(err.Error(), "cannot verify that the API server sent") || strings.Contains(err.Error(), "policy 'kube-queue-reviews'")):
		return &Unanswered{"kube-queue-controller cannot verify yet that the API server sent the question", err}
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), denied):
		why := err.Error()[strings.Index(err.Error(), denied)+len(denied):]
		if apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueNotFound) {
			err = Missing(resource, why)
		}
		return &Refused{why, err}
	case errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError:
		return &Unanswered{"kube-queue-controller does not answer", err}
	default:
		return err
	}
}

// IsNotServed reports whether the API server does not serve the resource at all. For a review, which has no name,
// NotFound always means this.
func IsNotServed(err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	details := DetailsOf(err)
	return details == nil || details.Name == "" || slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse })
}

// DetailsOf returns the details of an API error; nil if it has none.
func DetailsOf(err error) *metav1.StatusDetails {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Details
	}
	return nil
}
