package chart

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/built"
	"kube-queue.dev/kube-queue/test/require"
)

var update = flag.Bool("update", false, "write the golden files and the table of values in the chart's README.md")

const (
	root  = "../.."
	chart = root + "/charts/kube-queue"
)

// helm is the path of the program.
var helm string

func TestMain(m *testing.M) {
	flag.Parse()
	folder, err := built.Programs(context.Background(), "hack/helm", "-ldflags=-s -w", "tool")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	helm = filepath.Join(folder, "helm")
	os.Exit(m.Run())
}

// run runs helm with its own home folder, so that it ignores the user's settings.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), helm, args...)
	cmd.Env = append(os.Environ(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir(), "KUBECONFIG=")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", errors.New(strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// template renders the chart of the given folder as a release in namespace kube-queue.
func template(t *testing.T, folder string, args ...string) (string, error) {
	t.Helper()
	return run(t, append([]string{"template", "queue", folder, "--namespace", "kube-queue", "--kube-version", "1.36.0"}, args...)...)
}

// render renders the chart and fails the test on errors.
func render(t *testing.T, args ...string) []object {
	t.Helper()
	out, err := template(t, chart, args...)
	require.NoError(t, err)
	return objects(t, out)
}
