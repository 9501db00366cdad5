package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/audit/log"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/require"
)

func TestWritesAreCountedByAgentAndKind(t *testing.T) {
	counts := Counts{}
	for _, w := range []struct {
		agent, verb, ref string
		code, times      int
	}{
		{Extensions + "/v1.36.3 (linux/amd64)", "patch", `"resource":"jobs","apiGroup":"batch","subresource":"status"`, 200, 30},
		{Extensions, "patch", `"resource":"jobs","apiGroup":"batch","subresource":"status"`, 409, 10},
		{Controller, "patch", `"resource":"queues","apiGroup":"scheduling.x-k8s.io"`, 200, 20},
		{"", "create", `"resource":"events","apiGroup":"events.k8s.io"`, 201, 5},
		{"rare", "create", `"resource":"pods"`, 201, 1},
	} {
		e, err := log.Parse(fmt.Appendf(nil, `{"verb":%q,"userAgent":%q,"objectRef":{%s},"responseStatus":{"code":%d}}`, w.verb, w.agent, w.ref, w.code))
		require.NoError(t, err)
		for range w.times {
			counts.Add(e)
		}
	}
	r := NewReport("test")
	counts.Show(r.Section("writes"), 100, Bar{})
	var got []string
	for _, f := range r.Sections[0].Figures {
		got = append(got, fmt.Sprint(f.Name, " ", f.Value))
	}
	if want := []string{"all 0.56", "kube-queue, on jobs, units and events 0.3", "kube-queue, on Queues and trees 0.2",
		"job-extensions: patch jobs.batch/status 0.3", "job-extensions: patch jobs.batch/status, refused 0.1",
		"kube-queue-controller: patch queues.scheduling.x-k8s.io 0.2", "unknown: create events 0.05"}; !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestACommandIsMeasuredAndEndsWithItsChildren(t *testing.T) {
	dir := t.TempDir()
	r := &Rig{Cluster: &clustertest.Cluster{Ready: clustertest.Ready{Logs: dir, Kubeconfig: "/the/config"}}, running: map[string]*Program{}}
	p, err := r.Command("first", "echo $KUBECONFIG; sleep 1000 & echo $!; wait")
	require.NoError(t, err)
	lines := func() []string {
		log, err := os.ReadFile(filepath.Join(dir, "first.log"))
		require.NoError(t, err)
		return strings.Fields(string(log))
	}
	harness.Eventually(t, time.Minute, "the command has started its child", func() (bool, string) { return len(lines()) == 2, "" })
	if lines()[0] != "/the/config" {
		t.Errorf("its KUBECONFIG is %s", lines()[0])
	}
	child, err := strconv.Atoi(lines()[1])
	require.NoError(t, err)
	harness.Eventually(t, time.Minute, "the group uses what its processes use", func() (bool, string) { // a starting child grows
		group, groupErr := readUse(nil, map[int]string{p.PID: "all"})
		alone, err := readUse(map[int]string{p.PID: "shell", child: "child"}, nil)
		require.NoError(t, errors.Join(err, groupErr))
		shell, child := alone["shell"].Resident, alone["child"].Resident
		return shell > 0 && child > 0 && group["all"].Resident >= shell+child/2, fmt.Sprint(group, alone)
	})
	require.NoError(t, p.Stop())
	harness.Eventually(t, time.Minute, "the child has ended", func() (bool, string) {
		// A process that has ended can remain as a zombie.
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		return err != nil || strings.Contains(string(stat), ") Z "), string(stat)
	})
	if running := r.programsNow(); len(running) > 0 {
		t.Errorf("running are %v", running)
	}
}

func TestEachTaskRunsOnceAndNotBeforeItsTime(t *testing.T) {
	start := time.Now()
	var times [20]atomic.Int32
	due := func(index int) time.Duration { return time.Duration(index) * time.Millisecond }
	require.NoError(t, InTime(t.Context(), start, 4, len(times), due, func(_ context.Context, index int) error {
		if early := due(index) - time.Since(start); early > 0 || times[index].Add(1) != 1 {
			t.Errorf("%d was done again or %v before its time", index, early)
		}
		return nil
	}))
	for index := range times {
		if times[index].Load() == 0 {
			t.Errorf("%d was not done", index)
		}
	}
}

func TestTheFirstErrorEndsTheTasks(t *testing.T) {
	broken := errors.New("broken")
	far := func(index int) time.Duration { return time.Duration(index) * time.Hour }
	if err := InTime(t.Context(), time.Now(), 2, 3, far, func(context.Context, int) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestPercentilesUseTheNearestRank(t *testing.T) {
	hundred := make(Durations, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	for _, c := range []struct {
		of   Durations
		p    float64
		want time.Duration
	}{
		{hundred, 0.5, 50}, {hundred, 0.99, 99}, {hundred, 1, 100}, {hundred, 0, 1},
		{Durations{7}, 0.5, 7}, {Durations{3, 1, 2}, 0.5, 2}, {Durations{4, 3, 1, 2}, 0.5, 2}, {nil, 0.5, 0},
	} {
		if got := c.of.Percentile(c.p); got != c.want {
			t.Errorf("%v of %v is %d, want %d", c.p, c.of, got, c.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("Percentile sorted the durations in place")
	}
}

func TestTheFileHasTheFiguresAndWhetherTheirBarsAreMet(t *testing.T) {
	r := NewReport("units")
	s := r.Section("in all")
	s.Add("wall", 84.25, "s", Bar{AtMost: new(85.0)})
	s.Add("rate", 250, "units/s", Bar{AtLeast: new(300.0)})
	s.Add("units", 15000, "", Bar{})
	path := filepath.Join(t.TempDir(), "new", "report.json")
	require.NoError(t, r.WriteFile(path))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var compact bytes.Buffer
	require.NoError(t, json.Compact(&compact, data))
	if want := `"sections":[{"name":"in all","figures":[{"name":"wall","value":84.25,"unit":"s","atMost":85,"met":true},` +
		`{"name":"rate","value":250,"unit":"units/s","atLeast":300,"met":false},{"name":"units","value":15000}]}]}`; !strings.Contains(compact.String(), want) {
		t.Errorf("got %s", compact.String())
	}
}
