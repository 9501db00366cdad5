package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/require"
)

const root = "../.."

// The alternative text and the caption repeat figures of the plot, which verify.sh compares
// with what this program writes.
func TestTheReadmeShowsTheFiguresOfThePlot(t *testing.T) {
	l, err := lendingIn(t.Context(), root)
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	readme := strings.Join(strings.Fields(string(text)), " ")
	days := time.Duration(l.hard.Makespan).Round(24*time.Hour) / (24 * time.Hour)
	for _, want := range []string{
		fmt.Sprintf("![GPUs in use by %d teams over %d days. With hard quotas the mean wait is %s, with quotas that lend %s](docs/images/lending.svg)",
			l.Trace.Tenants, days, l.hard.All.Mean, l.elastic.All.Mean),
		fmt.Sprintf("*The same %d GPU jobs of %d teams on %d GPUs", l.Trace.Jobs, l.Trace.Tenants, gpus),
		fmt.Sprintf("With hard quotas, %d jobs are larger than their team's quota and never run.", l.hard.All.Never),
	} {
		if !strings.Contains(readme, want) {
			t.Errorf("README.md does not contain %q", want)
		}
	}
}
