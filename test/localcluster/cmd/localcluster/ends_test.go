package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
	"kube-queue.dev/kube-queue/test/require"
	"kube-queue.dev/kube-queue/test/testmode"
)

// running is a started command.
type running struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
	// errs is the file with its standard error.
	errs string
}

// startRun starts a command with an open standard input.
func startRun(t *testing.T, cmd *exec.Cmd) *running {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	errs, err := os.Create(filepath.Join(t.TempDir(), "errs"))
	require.NoError(t, err)
	defer errs.Close()
	cmd.Stderr = errs
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &running{cmd: cmd, stdin: stdin, out: bufio.NewReader(out), errs: errs.Name()}
}

// said returns its standard error.
func (r *running) said(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(r.errs)
	require.NoError(t, err)
	return string(text)
}

// ready reads the line that reports that the cluster is ready.
func (r *running) ready(t *testing.T) *cluster.Ready {
	t.Helper()
	line, err := r.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("%v\n%s", err, r.said(t))
	}
	ready := &cluster.Ready{}
	if err := json.Unmarshal(line, ready); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	for _, path := range []string{ready.Kubeconfig, ready.Data, ready.AuditLog, ready.Kubectl, ready.Logs} {
		_, err = os.Stat(path)
		require.NoError(t, err)
	}
	return ready
}

// says waits for a text on standard error.
func (r *running) says(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, text, func() error {
		if said := r.said(t); !strings.Contains(said, text) {
			return errors.New(said)
		}
		return nil
	})
}

func (r *running) wait(t *testing.T) result {
	t.Helper()
	_ = r.cmd.Wait()
	return result{code: r.cmd.ProcessState.ExitCode(), errs: r.said(t)}
}

func TestCrashEndsTheRunAndIsReported(t *testing.T) {
	data := t.TempDir()
	r := startRun(t, command("run", "--data", data, "--nodes=1"))
	r.ready(t)
	parts := status(t, data).Parts
	etcd := part(t, &cluster.Status{Parts: parts}, "etcd")
	require.NoError(t, syscall.Kill(etcd.PID, syscall.SIGKILL))
	ended := r.wait(t)
	if ended.code == 0 || !strings.Contains(ended.errs, "etcd crashed: signal: killed; the end of its log:\n{") {
		t.Errorf("got %+v", ended)
	}
	nothingLeft(t, data, parts...)

	after := localcluster(t, "status", "--data", data)
	if after.code != 1 || !strings.Contains(after.out, "etcd crashed: signal: killed; the end of its log:\n{") {
		t.Errorf("got %+v", after)
	}
	if s := status(t, data); s.Phase != cluster.PhaseFailed || part(t, s, "etcd").State != cluster.StateCrashed || part(t, s, "kube-apiserver").State != cluster.StateStopped {
		t.Errorf("got %+v", s)
	}
}

func TestNoProcessOutlivesAKilledSupervisor(t *testing.T) {
	testmode.OnlyInTestAll(t, "internal/process shows that children die with their starter, and that all marked processes are found")
	data := filepath.Join(t.TempDir(), strings.Repeat("a-path-too-long-for-a-socket/", 4), "data")
	succeed(t, "up", "--data", data, "--nodes=1")
	// The kernel does not kill the children of a program. "down" finds them.
	succeed(t, "program", "start", "--data", data, "--name", "family", "--", "sh", "-c", "sleep 1000 & wait")
	s := status(t, data)
	var marked []process.Identity
	require.Eventually(t, "the family has a child", func() error {
		if marked = process.Marked(mark, data); len(marked) < len(s.Parts)+1 {
			return fmt.Errorf("%d processes carry the mark, want those of %d parts and a child", len(marked), len(s.Parts))
		}
		return nil
	})
	require.NoError(t, syscall.Kill(s.Supervisor.PID, syscall.SIGKILL))
	var ids []process.Identity
	for _, p := range s.Parts {
		ids = append(ids, p.Identity)
	}
	if err := process.WaitGone(ids, 5*time.Second); err != nil {
		t.Error(err)
	}
	if after := status(t, data); after.Phase != cluster.PhaseFailed || !strings.Contains(after.Failure, "supervisor") {
		t.Errorf("got %+v", after)
	}
	succeed(t, "down", "--data", data)
	if err := process.WaitGone(marked, 0); err != nil {
		t.Error(err)
	}
	succeed(t, "down", "--data", data)
}

func TestInterruptedStartLeavesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		command string
		end     func(*running)
	}{
		"run, by SIGINT":               {"run", func(r *running) { _ = r.cmd.Process.Signal(syscall.SIGINT) }},
		"run, by the end of its input": {"run", func(r *running) { r.stdin.Close() }},
		"up, by SIGINT":                {"up", func(r *running) { _ = r.cmd.Process.Signal(syscall.SIGINT) }},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			r := startRun(t, command(test.command, "--data", data, "--nodes=1"))
			r.says(t, "starting kube-apiserver")
			test.end(r)
			if ended := r.wait(t); ended.code != 1 {
				t.Errorf("got %+v", ended)
			}
			nothingLeft(t, data)
			if cluster.Folder(data).InUse() {
				t.Error("the folder is still in use")
			}
		})
	}
}

func TestInterruptedBuildLeavesNothing(t *testing.T) {
	cache := t.TempDir()
	cmd := command("build")
	cmd.Env = append(os.Environ(), "KUBE_QUEUE_CACHE="+cache)
	r := startRun(t, cmd)
	r.says(t, "building controlplane")
	scratch := filepath.Join(cache, "localcluster", "building-controlplane", "scratch")
	require.Eventually(t, "go command", func() error {
		if len(process.Marked("GOTMPDIR", scratch)) == 0 {
			return errors.New("the build has not started yet")
		}
		return nil
	})
	_ = r.cmd.Process.Signal(syscall.SIGINT)
	if ended := r.wait(t); ended.code != 1 || !strings.Contains(ended.errs, "interrupted") {
		t.Errorf("got %+v", ended)
	}
	// The compilers were killed with the go command. The kernel may need a moment to remove them.
	if err := process.WaitGone(process.Marked("GOTMPDIR", scratch), time.Second); err != nil {
		t.Errorf("a command of the build is left: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "localcluster", "*controlplane*")); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}
