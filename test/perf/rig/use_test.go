package rig

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
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

func TestUseOfThisProcess(t *testing.T) {
	use, err := usageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if use.Resident <= 0 || use.Peak < use.Resident {
		t.Errorf("it uses %+v", use)
	}
}

func TestGroupHasAllChildrenOfItsFirstProcess(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 1000 & echo $!; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}()
	var started int
	if _, err := fmt.Fscan(out, &started); err != nil {
		t.Fatal(err)
	}
	pids, err := members(cmd.Process.Pid)
	if err != nil || !slices.Contains(pids, cmd.Process.Pid) || slices.Contains(pids, os.Getpid()) {
		t.Errorf("the group of %d is %v, %v", cmd.Process.Pid, pids, err)
	}
	if !slices.Contains(pids, started) {
		t.Errorf("the group %v has no %d", pids, started)
	}
}
