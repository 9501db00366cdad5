package main

import (
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/pkg/metrics"
)

func TestTheTableTakesTheOldOnesPlace(t *testing.T) {
	page := "# Metrics\n\n" + begin + "\nold\n" + end + "\nmore\n"
	got, err := insert(page, "new\n")
	if want := "# Metrics\n\n" + begin + "\nnew\n\n" + end + "\nmore\n"; err != nil || got != want {
		t.Errorf("it becomes\n%s%v, want\n%s", got, err, want)
	}
	again, err := insert(got, "new\n")
	if err != nil || again != got {
		t.Errorf("a second time it becomes\n%s%v", again, err)
	}
	if _, err := insert(end+begin, "new\n"); err == nil {
		t.Error("marks in the wrong order are taken for right")
	}
}

func TestEachMetricHasARow(t *testing.T) {
	rows := strings.Split(table(metrics.Definitions()), "\n")
	for i, d := range metrics.Definitions() {
		if row := rows[i+2]; !strings.HasPrefix(row, "| `"+d.Name+"` | ") || !strings.HasSuffix(row, " | "+d.Help+" |") || strings.Count(row, " | ") != 4 {
			t.Errorf("the row of %s is %s", d.Name, row)
		}
	}
}
