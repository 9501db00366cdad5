// Package metrics tests the metrics of the two programs: that each metric changes when its cause occurs, and who may
// read the metrics.
package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var suite *harness.Suite

func TestMain(m *testing.M) {
	harness.Main(m, clustertest.Options{Nodes: 1, PodRunTime: harness.UntilFinished}, func(s *harness.Suite) { suite = s })
}

// watched is a scraped program, with the metrics that have had a value other than 0.
type watched struct {
	*harness.Program
	t     *testing.T
	token string
	moved map[string]bool
}

func watch(t *testing.T, program *harness.Program, token string) *watched {
	return &watched{Program: program, t: t, token: token, moved: map[string]bool{}}
}

// shows waits until the metrics contain all of these lines. The common prefix is omitted.
func (w *watched) shows(lines ...string) {
	w.t.Helper()
	harness.Eventually(w.t, time.Minute, w.Name+" shows "+strings.Join(lines, ", "), func() (bool, string) {
		shown := w.scrape()
		var missing []string
		for _, line := range lines {
			if !slices.Contains(shown, "kube_queue_"+line) {
				name, _, _ := strings.Cut(line, "{")
				missing = append(missing, about("kube_queue_"+strings.Fields(name)[0], shown))
			}
		}
		return len(missing) == 0, strings.Join(missing, "\n")
	})
}

// forgets waits until no line of the metrics contains this text.
func (w *watched) forgets(text string) {
	w.t.Helper()
	harness.Eventually(w.t, time.Minute, w.Name+" forgets "+text, func() (bool, string) {
		all := strings.Join(w.scrape(), "\n")
		return !strings.Contains(all, text), all
	})
}

// scrape returns the metrics.
func (w *watched) scrape() (lines []string) {
	w.t.Helper()
	lines = w.Metrics(w.t, w.token)
	for _, line := range lines {
		series, value, is := strings.Cut(line, " ")
		if at := strings.LastIndexByte(line, ' '); at > 0 {
			series, value = line[:at], line[at+1:]
		}
		if !is || strings.HasPrefix(line, "#") || value == "0" {
			continue
		}
		name, _, _ := strings.Cut(series, "{")
		for _, suffix := range []string{"", "_count"} {
			if plain, ok := strings.CutSuffix(name, suffix); ok {
				w.moved[plain] = true
			}
		}
	}
	return lines
}

func about(name string, shown []string) string {
	return fmt.Sprint(name, ": ", slices.DeleteFunc(slices.Clone(shown), func(line string) bool { return !strings.HasPrefix(line, name) }))
}
