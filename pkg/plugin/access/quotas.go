package access

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
	"kube-queue.dev/kube-queue/pkg/plugin/reviews"
)

// ReadQuotas returns a quota and those below it, or all quotas if quota is empty.
func (c *Cluster) ReadQuotas(ctx context.Context, quota string) (*visibility.QuotaReview, error) {
	review, err := c.Reviews().Quotas(ctx, c.Namespace, quota)
	if unanswered := reviews.IsUnanswered(err); unanswered != nil {
		return c.treeOfObjects(ctx, quota, unanswered)
	}
	return review, err
}

// NoQuota returns the error for a caller who sees no quota.
func (c *Cluster) NoQuota() error {
	return fmt.Errorf("no quota lists namespace %q; ask an administrator to add the namespace to a node of the quota tree", c.Namespace)
}

// QuotaPaths returns the paths of all quotas that the caller may see.
func (c *Cluster) QuotaPaths(ctx context.Context) []string {
	status := &visibility.QuotaReviewStatus{}
	if review, err := c.Reviews().Quotas(ctx, c.Namespace, ""); err == nil {
		status = review.Status
	} else if quotas, _, err := c.readTree(ctx); err == nil {
		status.Quotas = quotas
	}
	return namesOf(status.Quotas, func(q visibility.QuotaSummary) string { return q.Path })
}

var errNoTree = reviews.Missing("tree", "there is no ElasticQuotaTree in namespace "+quotav1beta1.TreeNamespace+", so no quota is in force")

// readTree returns the nodes of the tree in use.
func (c *Cluster) readTree(ctx context.Context) (quotas []visibility.QuotaSummary, problem string, err error) {
	tree, err := c.treeInUse(ctx)
	switch {
	case err != nil:
		return nil, "", err
	case tree == nil:
		return nil, "", errNoTree
	}
	quotas, problem = objects.Tree(tree)
	return quotas, problem, nil
}

// checkInUse returns an error if the tree has none of the quotas that the Queues show: another quota backend is in
// use, and the tree is not updated. It returns nil if the caller cannot list Queues.
func (c *Cluster) checkInUse(ctx context.Context, quotas []visibility.QuotaSummary) error {
	list, err := c.Queues(ctx)
	if err != nil {
		return nil
	}
	others := ""
	for i := range list {
		path := list[i].Status.Quota
		if slices.ContainsFunc(quotas, func(q visibility.QuotaSummary) bool { return q.Path == path }) {
			return nil
		}
		others = cmp.Or(others, path)
	}
	if others == "" {
		return nil
	}
	return fmt.Errorf("the ElasticQuotaTree is not in use: the Queues show other quotas, such as %q, as with the backend resourcequota; kubectl describe resourcequota shows their limits", others)
}

func (c *Cluster) treeOfObjects(ctx context.Context, quota string, why error) (*visibility.QuotaReview, error) {
	quotas, problem, err := c.readTree(ctx)
	if err != nil {
		return nil, c.NoAnswer(why, err, "list ElasticQuotaTrees in namespace "+quotav1beta1.TreeNamespace)
	}
	if err := c.checkInUse(ctx, quotas); err != nil {
		return nil, err
	}
	if c.WarnOnce(why) && problem != "" {
		c.warn("The tree is invalid: %s", problem)
	}
	if quota != "" {
		if quotas = objects.Below(quotas, quota); quotas == nil {
			return nil, fmt.Errorf("quota %q does not exist%s", quota, DidYouMean(quota, c.QuotaPaths(ctx)))
		}
	}
	return &visibility.QuotaReview{
		TypeMeta: metav1.TypeMeta{APIVersion: visibility.SchemeGroupVersion.String(), Kind: "QuotaReview"},
		Spec:     visibility.QuotaReviewSpec{Quota: quota},
		Status:   &visibility.QuotaReviewStatus{ObservedTime: metav1.NewMicroTime(c.Now()), Quotas: quotas, Total: int32(len(quotas))},
	}, nil
}
