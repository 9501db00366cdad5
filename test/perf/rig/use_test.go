package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/perf/pace"
	"kube-queue.dev/kube-queue/test/require"
)

func TestMemoryIsThatOfTheLaterUse(t *testing.T) {
	now := Use{"a": {CPU: 3 * time.Second, Resident: 3}}
	if since := now.Since(Use{"a": {CPU: time.Second, Resident: 100}})["a"]; since != (Usage{CPU: 2 * time.Second, Resident: 3}) || now["a"].CPU != 3*time.Second {
		t.Errorf("since the first: %+v, and now %+v", since, now)
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
	eventually(t, "the command has started its child", func() bool { return len(lines()) == 2 })
	if lines()[0] != "/the/config" {
		t.Errorf("its KUBECONFIG is %s", lines()[0])
	}
	child, err := strconv.Atoi(lines()[1])
	require.NoError(t, err)
	eventually(t, "the group uses what its processes use", func() bool { // what the child uses grows at its start
		group, groupErr := readUse(nil, map[int]string{p.PID: "all"})
		alone, err := readUse(map[int]string{p.PID: "shell", child: "child"}, nil)
		require.NoError(t, errors.Join(err, groupErr))
		shell, child := alone["shell"].Resident, alone["child"].Resident
		return shell > 0 && child > 0 && group["all"].Resident >= shell+child/2
	})
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	eventually(t, "the child has ended", func() bool {
		// A process that has ended can remain as a zombie.
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
	if running := r.programsNow(); len(running) > 0 {
		t.Errorf("running are %v", running)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	if err := pace.Until(t.Context(), time.Millisecond, time.Minute, errors.New("not within a minute"), func(context.Context) (bool, error) { return is(), nil }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
