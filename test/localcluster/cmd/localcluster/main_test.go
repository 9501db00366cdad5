package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
	"kube-queue.dev/kube-queue/test/require"
)

// These tests run the real program. The parts of TestCluster share one cluster.

const (
	// mark is the environment variable of all processes of a cluster.
	mark = "KUBE_QUEUE_LOCALCLUSTER_DATA"
	// patience is a timeout that is much longer than each step needs.
	patience = 60 * time.Second
)

// program is the path of the program under test.
var program string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "localcluster-test-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "localcluster")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Printf("build: %v\n%s", err, out)
		return 1
	}
	// Building components takes minutes if they are not cached, and is not part of a test.
	build := exec.Command(program, "build")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Println("build:", err)
		return 1
	}
	return m.Run()
}

// result is the result of a command.
type result struct {
	code      int
	out, errs string
}

func command(args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	// The command must end if the test hangs.
	cmd.Cancel, cmd.WaitDelay = nil, patience
	return cmd
}

func localcluster(t *testing.T, args ...string) result {
	t.Helper()
	return finish(t, command(args...))
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// succeed runs a command that must succeed.
func succeed(t *testing.T, args ...string) result {
	t.Helper()
	r := localcluster(t, args...)
	if r.code != 0 {
		t.Fatalf("localcluster %v: exit status %d\n%s%s", args, r.code, r.out, r.errs)
	}
	return r
}

func status(t *testing.T, data string) *cluster.Status {
	t.Helper()
	r := localcluster(t, "status", "--data", data, "-o", "json")
	s := &cluster.Status{}
	if err := json.Unmarshal([]byte(r.out), s); err != nil {
		t.Fatalf("status: %v\n%s%s", err, r.out, r.errs)
	}
	if (r.code == 0) != s.AllReady() {
		t.Errorf("exit status %d of a status that is %s", r.code, s.Phase)
	}
	return s
}

func part(t *testing.T, s *cluster.Status, name string) cluster.PartStatus {
	t.Helper()
	for _, p := range s.Parts {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("the status has no %s: %+v", name, s.Parts)
	return cluster.PartStatus{}
}

// nothingLeft waits until no process of the cluster runs.
func nothingLeft(t *testing.T, data string, parts ...cluster.PartStatus) {
	t.Helper()
	ids := process.Marked(mark, data)
	for _, p := range parts {
		ids = append(ids, p.Identity)
	}
	if err := process.WaitGone(ids, 5*time.Second); err != nil {
		t.Errorf("processes are left: %v", err)
	}
}

// kubectl runs the built kubectl and returns its output.
func kubectl(t *testing.T, ready *cluster.Ready, stdin string, args ...string) string {
	t.Helper()
	out, err := tryKubectl(ready, stdin, args...)
	require.NoError(t, err)
	return out
}

func tryKubectl(ready *cluster.Ready, stdin string, args ...string) (string, error) {
	cmd := exec.Command(ready.Kubectl, append([]string{"--kubeconfig", ready.Kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %v: %w\n%s", args, err, errs.String())
	}
	return string(out), nil
}
