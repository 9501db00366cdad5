package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/require"
)

const soon = 5 * time.Second

// starterVariable makes this test program start a child and wait.
const starterVariable = "PROCESS_TEST_STARTER_LOG"

func TestMain(m *testing.M) {
	if log := os.Getenv(starterVariable); log != "" {
		p, err := NewStarter().Start(Spec{Name: "child", Path: "/bin/sh", Args: []string{"-c", "exec sleep 1000"}, Log: log})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.PID, p.StartTicks)
		<-p.Done()
	}
	os.Exit(m.Run())
}

func start(t *testing.T, script string, env ...string) (p *Process, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "log")
	p, err := NewStarter().Start(Spec{
		Name: "script", Path: "/bin/sh", Args: []string{"-c", script}, Env: append(os.Environ(), env...), Log: log,
	})
	require.NoError(t, err)
	t.Cleanup(func() { p.Stop(0) })
	return p, log
}

// waitForLog waits until the log contains the text, and returns the log.
func waitForLog(t *testing.T, log, text string) string {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(soon); time.Now().Before(end); <-ticker.C {
		if said := Tail(log, 100); strings.Contains(said, text) {
			return said
		}
	}
	t.Fatalf("the log does not contain %q: %s", text, Tail(log, 100))
	return ""
}

func TestExitOfAProcess(t *testing.T) {
	p, log := start(t, "echo last words; exit 7")
	<-p.Done()
	if p.Exit() != "exit status 7" || Tail(log, 1) != "last words" {
		t.Errorf("exit %q, log %q", p.Exit(), Tail(log, 1))
	}
}

func TestStopKillsAProcessThatIgnoresSIGTERM(t *testing.T) {
	p, log := start(t, "trap '' TERM; echo ready; while :; do sleep 1000; done")
	waitForLog(t, log, "ready")
	p.Stop(50 * time.Millisecond)
	if p.Alive() {
		t.Error("the process still runs")
	}
}

func TestGroupEndsWithItsLeader(t *testing.T) {
	p, log := start(t, "sleep 1000 & echo child $!; exit 0")
	var child Identity
	_, err := fmt.Sscanf(waitForLog(t, log, "child"), "child %d", &child.PID)
	require.NoError(t, err)
	<-p.Done()
	// The child was already killed. It may be a zombie.
	child.StartTicks, _ = startTicks(child.PID)
	require.NoError(t, WaitGone([]Identity{child}, soon))
}

func TestChildrenDieWithAKilledStarter(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), starterVariable+"="+filepath.Join(t.TempDir(), "log"))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var child Identity
	_, err = fmt.Fscan(out, &child.PID, &child.StartTicks)
	require.NoError(t, err)
	if !child.Alive() {
		t.Fatal("the child does not run")
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait()
	require.NoError(t, WaitGone([]Identity{child}, soon))
}

func TestProcessWithAReusedPIDIsNotKilled(t *testing.T) {
	p, _ := start(t, "sleep 1000")
	stranger := Identity{PID: p.PID, StartTicks: p.StartTicks + 1}
	if stranger.Alive() {
		t.Error("Alive is true for another process with the same PID")
	}
	require.NoError(t, stranger.Kill(soon))
	if !p.Alive() {
		t.Error("the other process was killed")
	}
}

func TestMarkedProcessesAreFound(t *testing.T) {
	value := t.TempDir()
	p, log := start(t, "sleep 1000 & echo ready; wait", "PROCESS_TEST_MARK="+value)
	waitForLog(t, log, "ready")
	both := Marked("PROCESS_TEST_MARK", value)
	for end := time.Now().Add(soon); len(both) < 2 && time.Now().Before(end); { // while the child becomes sleep, it has no environment
		both = Marked("PROCESS_TEST_MARK", value)
	}
	if len(both) != 2 {
		t.Errorf("found %d of 2 processes", len(both))
	}
	if found := Marked("PROCESS_TEST_MARK", value+"/other"); len(found) != 0 {
		t.Errorf("found %v under another mark", found)
	}
	p.Stop(0)
	// Stop waits only for the leader. The killed child may exit later.
	require.NoError(t, WaitGone(both, soon))
	if found := Marked("PROCESS_TEST_MARK", value); len(found) != 0 {
		t.Errorf("found %v after the end", found)
	}
}

func TestTailReturnsTheLastLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", tailBytes)+"\na\nb\nc\n"), 0o600))
	if got := Tail(path, 2); got != "b\nc" {
		t.Errorf("got %q", got)
	}
	if got := Tail(path+"-missing", 2); got != "" {
		t.Errorf("got %q of a missing file", got)
	}
}
