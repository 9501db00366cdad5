package main

import (
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/pkg/metrics"
)

func TestEachMetricHasARow(t *testing.T) {
	rows := strings.Split(table(metrics.Definitions()), "\n")
	for i, d := range metrics.Definitions() {
		if row := rows[i+2]; !strings.HasPrefix(row, "| `"+d.Name+"` | ") || !strings.HasSuffix(row, " | "+d.Help+" |") || strings.Count(row, " | ") != 4 {
			t.Errorf("the row of %s is %s", d.Name, row)
		}
	}
}
