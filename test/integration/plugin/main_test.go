// Package plugin tests the built kubectl kube-queue, called by kubectl, against a real API server and the programs:
// as an administrator, as a tenant with the rights of one namespace, and without an answering controller.
package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/built"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/require"
)

var (
	suite *harness.Suite
	// programs is the folder of the plugin.
	programs string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if programs, err = built.Programs(context.Background(), ".", "kube-queue.dev/kube-queue/cmd/kubectl-kube_queue"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return harness.Run(m, clustertest.Options{PodRunTime: harness.UntilFinished}, func(s *harness.Suite) { suite = s })
}

// result is the output of a command.
type result struct {
	code        int
	out, errors string
}

// command is kubectl kube-queue with arguments.
func command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, suite.KubectlPath, append([]string{"kube-queue"}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+programs+string(filepath.ListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+suite.Kubeconfig)
	return cmd
}

// kubeQueue runs kubectl kube-queue.
func kubeQueue(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := command(t.Context(), args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// succeeds runs a command, and checks that its output has the words and that there is no error.
func succeeds(t *testing.T, words []string, args ...string) result {
	t.Helper()
	r := kubeQueue(t, args...)
	if r.code != 0 || r.errors != "" {
		t.Errorf("%v: exit status %d\n%s%s", args, r.code, r.out, r.errors)
	}
	require.Says(t, args, r.out, words...)
	return r
}

// fails runs a command, and checks that it fails with a single line that has the words.
func fails(t *testing.T, words []string, args ...string) {
	t.Helper()
	r := kubeQueue(t, args...)
	if r.code != 1 || r.out != "" || strings.Count(r.errors, "\n") != 1 {
		t.Errorf("%v: exit status %d, stdout %q, stderr %q", args, r.code, r.out, r.errors)
	}
	require.Says(t, args, r.errors, words...)
}
