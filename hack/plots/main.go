// Plots generates docs/images/lending.svg from test/traces/sample.csv, in the same way as
// kube-queue-simulator. update-codegen.sh runs it, and the simulator itself for the other plot of the documentation.
package main

import (
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/hack/internal/generator"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/pkg/simulator/plot"
	"kube-queue.dev/kube-queue/pkg/simulator/quotatree"
	"kube-queue.dev/kube-queue/pkg/simulator/report"
	"kube-queue.dev/kube-queue/pkg/simulator/trace"
)

const (
	gpu  = "nvidia.com/gpu"
	gpus = 80
)

func main() {
	generator.Main("ROOT-OF-THE-REPOSITORY", func(root string) error {
		l, err := lendingIn(context.Background(), root)
		if err != nil {
			return err
		}
		return generator.Rewrite(filepath.Join(root, "docs/images/lending.svg"), generator.Whole(string(l.plot())))
	})
}

// lending compares hard quotas with quotas that lend.
type lending struct {
	*report.Paper
	hard, elastic *report.Report
}

func lendingIn(ctx context.Context, root string) (*lending, error) {
	t, err := trace.Open(filepath.Join(root, "test/traces/sample.csv"), trace.Options{Format: trace.CSV, GPUResource: gpu})
	if err != nil {
		return nil, err
	}
	hard, err := replay(ctx, t, quotatree.Hard)
	if err != nil {
		return nil, err
	}
	elastic, err := replay(ctx, t, quotatree.Elastic)
	if err != nil {
		return nil, err
	}
	if never := elastic.All.Never; never > 0 {
		return nil, fmt.Errorf("%d jobs never run with quotas that lend, but the plot says that every job runs", never)
	}
	return &lending{&report.Paper{
		Trace:   report.Trace{Jobs: len(t.Jobs), Tenants: len(hard.Tenants), Start: &t.Start},
		Reports: []*report.Report{hard, elastic},
	}, hard, elastic}, nil
}

func (l *lending) plot() []byte {
	return plot.DrawUse(l.Paper, plot.Use{
		Title:    fmt.Sprintf("The same %d jobs of %d teams on %d GPUs, with two kinds of quotas", l.Trace.Jobs, l.Trace.Tenants, gpus),
		Subtitle: "Replayed by kube-queue-simulator. The jobs are a sample of Microsoft's Philly traces, CC BY 4.0.",
		Headings: []string{
			fmt.Sprintf("Hard quotas: no team exceeds its share. Mean wait %s, and %d jobs never run", l.hard.All.Mean, l.hard.All.Never),
			fmt.Sprintf("Quotas that lend: teams borrow what is idle. Mean wait %s, and every job runs", l.elastic.All.Mean),
		},
		Unit:  "GPUs in use",
		Limit: fmt.Sprintf("%d GPUs", gpus),
	})
}

func replay(ctx context.Context, t *trace.Trace, kind quotatree.Kind) (*report.Report, error) {
	capacity := map[string]resource.Quantity{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
	policy := queue.RoundRobin
	scenario := simulator.Scenario{Jobs: t.Jobs, Tree: quotatree.Propose(kind, t.Jobs, capacity), Core: scheduler.Options{Policy: policy}}
	result, err := simulator.Run(ctx, scenario)
	if err != nil {
		return nil, fmt.Errorf("%s quotas, policy %s: %w", kind, policy, err)
	}
	return report.Of(&scenario, result, report.Options{Name: policy.Name, Resource: gpu}), nil
}
