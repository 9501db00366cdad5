package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1beta1 "kube-queue.dev/kube-queue/apis/quota/v1beta1"
	visibility "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/plugin/objects"
	"kube-queue.dev/kube-queue/pkg/plugin/render"
	"kube-queue.dev/kube-queue/pkg/plugin/reviews"
)

func (s *shell) tree() *cobra.Command {
	o := &output{templates: true}
	cmd := &cobra.Command{
		Use:   "tree [QUOTA]",
		Short: "Show how the quota tree is used",
		Long: `For each quota, shows the guarantee (MIN), the used amount, the limit (MAX), what it uses above its MIN (BORROWED),
the unused part of its MIN that other quotas have borrowed (LENT), what pods outside the queue use (UNQUEUED),
and what waiting jobs request (WAITING). The row jobs counts jobs. It is shown if the quota limits them, or with
-o wide.

If you set QUOTA to the path of a quota, only this quota and the quotas below it are shown.

A terminal shows bars: █ is used within the guarantee, ▒ is borrowed, and · is free below the max.

Users who cannot list ElasticQuotaTrees see the quotas of the namespace and their ancestors.`,
		Example: `  kubectl kube-queue tree
  kubectl kube-queue tree company/research --watch`,
		Args:              atMostOne("the path of one quota"),
		ValidArgsFunction: s.completeQuotas,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			c, err := s.connect()
			if err != nil {
				return err
			}
			quota := ""
			if len(args) > 0 {
				quota = args[0]
			}
			return s.repeat(cmd.Context(), o, func(ctx context.Context, to io.Writer) error { return c.showTree(ctx, to, o, quota) })
		},
	}
	o.add(cmd, formatTable, formatWide, formatJSON, formatYAML)
	o.addRefresh(cmd)
	return cmd
}

// showTree writes the quotas.
func (c *cluster) showTree(ctx context.Context, to io.Writer, o *output, quota string) error {
	review, err := c.readQuotas(ctx, quota)
	if err != nil {
		return err
	}
	if !o.isTable() {
		return o.object(to, review)
	}
	if len(review.Status.Quotas) == 0 {
		if quota != "" {
			return fmt.Errorf("quota %q does not exist, or you may not see it%s", quota, didYouMean(quota, c.quotaPaths(ctx)))
		}
		return fmt.Errorf("no quota lists namespace %q; ask an administrator to add the namespace to a node of the quota tree", c.namespace)
	}
	if err := render.Tree(to, review.Status.Quotas, c.view(o)); err != nil {
		return err
	}
	render.Hidden(to, review.Status.Hidden)
	return nil
}

// readQuotas returns a quota and those below it, or all.
func (c *cluster) readQuotas(ctx context.Context, quota string) (*visibility.QuotaReview, error) {
	review, err := c.reviews().Quotas(ctx, c.namespace, quota)
	if unanswered := reviews.IsUnanswered(err); unanswered != nil {
		return c.treeOfObjects(ctx, quota, unanswered)
	}
	return review, err
}

// quotaPaths returns the paths of all quotas that the caller may see.
func (c *cluster) quotaPaths(ctx context.Context) []string {
	var paths []string
	status := &visibility.QuotaReviewStatus{}
	if review, err := c.reviews().Quotas(ctx, c.namespace, ""); err == nil {
		status = review.Status
	} else if quotas, _, err := c.readTree(ctx); err == nil {
		status.Quotas = quotas
	}
	for _, q := range status.Quotas {
		paths = append(paths, q.Path)
	}
	return paths
}

var errNoTree = errors.New("there is no ElasticQuotaTree in namespace " + quotav1beta1.TreeNamespace + ", so no quota is in force")

// readTree returns the nodes of the tree in use.
func (c *cluster) readTree(ctx context.Context) (quotas []visibility.QuotaSummary, problem string, err error) {
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

// checkInUse returns an error if the Queues, as far as the caller can list them, show quotas of which none is in the
// tree: another quota backend is in use, and nobody updates the tree.
func (c *cluster) checkInUse(ctx context.Context, quotas []visibility.QuotaSummary) error {
	list, err := c.queues(ctx)
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

func (c *cluster) treeOfObjects(ctx context.Context, quota string, why error) (*visibility.QuotaReview, error) {
	quotas, problem, err := c.readTree(ctx)
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("%v, and you may not list ElasticQuotaTrees in namespace %s: %w", why, quotav1beta1.TreeNamespace, err)
	}
	if err != nil {
		return nil, err
	}
	if err := c.checkInUse(ctx, quotas); err != nil {
		return nil, err
	}
	if c.warnOnce(why) && problem != "" {
		c.warn("The tree is invalid: %s", problem)
	}
	if quota != "" {
		if quotas = objects.Below(quotas, quota); quotas == nil {
			return nil, fmt.Errorf("quota %q does not exist%s", quota, didYouMean(quota, c.quotaPaths(ctx)))
		}
	}
	return &visibility.QuotaReview{
		TypeMeta: metav1.TypeMeta{APIVersion: visibility.SchemeGroupVersion.String(), Kind: "QuotaReview"},
		Spec:     visibility.QuotaReviewSpec{Quota: quota},
		Status:   &visibility.QuotaReviewStatus{ObservedTime: metav1.NewMicroTime(c.Now()), Quotas: quotas, Total: int32(len(quotas))},
	}, nil
}
