package traces

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
	"kube-queue.dev/kube-queue/pkg/simulator/quotatree"
	"kube-queue.dev/kube-queue/pkg/simulator/report"
	"kube-queue.dev/kube-queue/pkg/simulator/trace"
	"kube-queue.dev/kube-queue/test/require"
)

// README.md compares hard quotas with quotas that lend, in a picture and in its caption.
func TestTheReadmeHasTheFiguresOfQuotasThatLend(t *testing.T) {
	sample, err := trace.Open("sample.csv", trace.Options{Format: trace.CSV, GPUResource: gpu})
	require.NoError(t, err)
	of := func(kind quotatree.Kind) *report.Report {
		s := simulator.Scenario{Jobs: sample.Jobs, Tree: quotatree.Propose(kind, sample.Jobs, map[string]resource.Quantity{gpu: resource.MustParse("80")}),
			Core: scheduler.Options{Policy: queue.RoundRobin}}
		result, err := simulator.Run(t.Context(), s)
		require.NoError(t, err)
		return report.Of(&s, result, report.Options{Name: queue.RoundRobin.Name, Resource: gpu})
	}
	hard, lends := of(quotatree.Hard), of(quotatree.Elastic)
	days := time.Duration(hard.Makespan).Round(24*time.Hour) / (24 * time.Hour)
	for file, texts := range map[string][]string{
		"README.md": {
			fmt.Sprintf("![GPUs in use by %d teams over %d days. With hard quotas the mean wait is %s, with quotas that lend %s](docs/images/lending.svg)",
				len(hard.Tenants), days, hard.All.Mean, lends.All.Mean),
			fmt.Sprintf("*The same %d GPU jobs of %d teams on 80 GPUs", len(sample.Jobs), len(hard.Tenants)),
			fmt.Sprintf("With hard quotas, %d jobs are larger than their team's quota and never run.", hard.All.Never),
		},
		"docs/images/lending.svg": {
			fmt.Sprintf("Mean wait %s, and %d jobs never run", hard.All.Mean, hard.All.Never),
			fmt.Sprintf("Mean wait %s, and every job runs", lends.All.Mean),
		},
	} {
		read, err := os.ReadFile("../../" + file)
		require.NoError(t, err)
		for _, want := range texts {
			if !strings.Contains(strings.Join(strings.Fields(string(read)), " "), want) {
				t.Errorf("%s does not contain %q", file, want)
			}
		}
	}
	if lends.All.Never > 0 {
		t.Errorf("%d jobs never run with quotas that lend", lends.All.Never)
	}
}
