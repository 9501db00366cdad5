// Plots generates the plots of the documentation from test/traces/sample.csv, in the same way
// as kube-queue-simulator. update-codegen.sh runs it.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/pkg/simulator/plot"
	"kube-queue.dev/kube-queue/pkg/simulator/quotatree"
	"kube-queue.dev/kube-queue/pkg/simulator/report"
	"kube-queue.dev/kube-queue/pkg/simulator/trace"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: plots ROOT-OF-THE-REPOSITORY")
		os.Exit(2)
	}
	if err := write(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "plots: %v\n", err)
		os.Exit(1)
	}
}

const (
	sample = "test/traces/sample.csv"
	gpu    = "nvidia.com/gpu"
	gpus   = 80
)

func write(ctx context.Context, root string) error {
	t, err := trace.Open(filepath.Join(root, sample), trace.Options{Format: trace.CSV, GPUResource: gpu})
	if err != nil {
		return err
	}
	lending, err := lendingOf(ctx, t)
	if err != nil {
		return err
	}
	policies, err := policiesOf(ctx, t)
	if err != nil {
		return err
	}
	for path, picture := range map[string][]byte{
		"docs/images/lending.svg":  lending.plot(),
		"docs/tasks/simulator.svg": plot.Draw(policies),
	} {
		if err := os.WriteFile(filepath.Join(root, path), picture, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// lending compares hard quotas with quotas that lend.
type lending struct {
	*report.Paper
	hard, elastic *report.Report
}

func lendingOf(ctx context.Context, t *trace.Trace) (*lending, error) {
	hard, err := replay(ctx, t, quotatree.Hard, queue.RoundRobin)
	if err != nil {
		return nil, err
	}
	elastic, err := replay(ctx, t, quotatree.Elastic, queue.RoundRobin)
	if err != nil {
		return nil, err
	}
	if never := elastic.All.Never; never > 0 {
		return nil, fmt.Errorf("%d jobs never run with quotas that lend, but the plot says that every job runs", never)
	}
	return &lending{paper(t, hard, elastic), hard, elastic}, nil
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

// policiesOf compares two policies with quotas that lend.
func policiesOf(ctx context.Context, t *trace.Trace) (*report.Paper, error) {
	var reports []*report.Report
	for _, policy := range []*queue.Policy{queue.RoundRobin, queue.Block} {
		r, err := replay(ctx, t, quotatree.Elastic, policy)
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	return paper(t, reports...), nil
}

func replay(ctx context.Context, t *trace.Trace, kind quotatree.Kind, policy *queue.Policy) (*report.Report, error) {
	capacity := map[string]resource.Quantity{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
	scenario := simulator.Scenario{Jobs: t.Jobs, Tree: quotatree.Propose(kind, t.Jobs, capacity), Core: scheduler.Options{Policy: policy}}
	result, err := simulator.Run(ctx, scenario)
	if err != nil {
		return nil, fmt.Errorf("%s quotas, policy %s: %w", kind, policy, err)
	}
	return report.Of(&scenario, result, report.Options{Name: policy.Name, Resource: gpu}), nil
}

func paper(t *trace.Trace, reports ...*report.Report) *report.Paper {
	return &report.Paper{
		Trace:   report.Trace{File: sample, Jobs: len(t.Jobs), Tenants: len(reports[0].Tenants), Start: &t.Start},
		Tree:    report.Tree{Source: "tree.yaml"},
		Reports: reports,
	}
}
