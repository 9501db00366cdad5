package rig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/clustertest"
)

func TestUsageIsReadFromProcFiles(t *testing.T) {
	const stat = "42 (a) b (c)) S 1 42 42 0 -1 4194560 100 0 0 0 150 25 9 9 20 0 5 0 100 1 2"
	const status = "Name:\ta\nVmPeak:\t  9999 kB\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t5\n"
	usage, err := readUsage(stat, status)
	want := Usage{CPU: 1750 * time.Millisecond, Resident: 1 << 20, Peak: 2 << 20}
	if err != nil || usage != want {
		t.Errorf("got %+v, %v, want %+v", usage, err, want)
	}
}

func TestUnreadableProcFilesAreErrors(t *testing.T) {
	for name, c := range map[string][2]string{
		"a short stat":        {"42 (a) S 1", ""},
		"times of no numbers": {"42 (a) S 1 42 42 0 -1 4194560 100 0 0 0 x 25 9", ""},
		"memory of no number": {"42 (a) S 1 42 42 0 -1 4194560 100 0 0 0 1 25 9", "VmRSS:\tmany kB\n"},
	} {
		if usage, err := readUsage(c[0], c[1]); err == nil {
			t.Errorf("%s: got %+v", name, usage)
		}
	}
}

func TestUseIsTheSumOverStarts(t *testing.T) {
	use := Use{}
	use.add("a", Usage{CPU: time.Second, Peak: 7})
	use.add("a", Usage{CPU: 2 * time.Second, Resident: 3, Peak: 5})
	if got, want := use["a"], (Usage{CPU: 3 * time.Second, Resident: 3, Peak: 7}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	since := use.Since(Use{"a": {CPU: time.Second, Peak: 100}})
	if got, want := since["a"], (Usage{CPU: 2 * time.Second, Resident: 3, Peak: 7}); got != want {
		t.Errorf("since the first: got %+v, want %+v", got, want)
	}
	if use["a"].CPU != 3*time.Second {
		t.Error("Since changed the earlier Use")
	}
}

func TestACommandIsMeasuredAndEndsWithItsChildren(t *testing.T) {
	dir := t.TempDir()
	r := &Rig{Cluster: &clustertest.Cluster{Ready: clustertest.Ready{Logs: dir, Kubeconfig: "/the/config"}}, running: map[string]*Program{}, ended: Use{}}
	p, err := r.Command("first", "echo $KUBECONFIG; sleep 1000 & echo $!; wait")
	if err != nil {
		t.Fatal(err)
	}
	lines := func() []string {
		log, err := os.ReadFile(filepath.Join(dir, "first.log"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(log))
	}
	eventually(t, "the command has started its child", func() bool { return len(lines()) == 2 })
	if lines()[0] != "/the/config" {
		t.Errorf("its KUBECONFIG is %s", lines()[0])
	}
	child, err := strconv.Atoi(lines()[1])
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the group uses what its processes use", func() bool { // what the child uses grows at its start
		group, alone := Use{}, Use{}
		if err := errors.Join(group.read(nil, map[int]string{p.PID: "all"}), alone.read(map[int]string{p.PID: "shell", child: "child"}, nil)); err != nil {
			t.Fatal(err)
		}
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
	if r.ended["first"].Peak <= 0 || len(r.running) > 0 {
		t.Errorf("ended are %+v, running %v", r.ended, r.running)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
		runtime.Gosched()
	}
}
