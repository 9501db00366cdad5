package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"kube-queue.dev/kube-queue/pkg/plugin/access"
	"kube-queue.dev/kube-queue/pkg/plugin/render"
)

func (s *shell) tree() *cobra.Command {
	o := &output{templates: true}
	cmd := &cobra.Command{
		Use:        "tree [QUOTA]",
		SuggestFor: []string{"quota", "quotas"},
		Short:      "Show how the quota tree is used",
		Long: `For each quota, shows the guarantee (MIN), the used amount, the limit (MAX), what it uses above its MIN (BORROWED),
the unused part of its MIN that other quotas use (LENT), what pods outside the queue use (UNQUEUED),
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

func (c *cluster) showTree(ctx context.Context, to io.Writer, o *output, quota string) error {
	review, err := c.ReadQuotas(ctx, quota)
	if err != nil {
		return err
	}
	if !o.isTable() {
		return o.object(to, review)
	}
	if len(review.Status.Quotas) == 0 {
		if quota != "" {
			return fmt.Errorf("quota %q does not exist, or you may not see it%s", quota, access.DidYouMean(quota, c.QuotaPaths(ctx)))
		}
		return c.NoQuota()
	}
	if err := render.Tree(to, review.Status.Quotas, c.view(o)); err != nil {
		return err
	}
	render.Hidden(to, review.Status.Hidden)
	render.NotInForce(to, review.Status.Message)
	return nil
}
