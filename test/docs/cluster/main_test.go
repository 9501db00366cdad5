// Package cluster runs the commands in README.md and the documentation on a real cluster with kube-queue and the
// operators, and compares their output with the pages.
//
// Terms. A scene prepares what a page describes, and runs the commands in the order of the page, as a reader would. A
// page without a scene needs no preparation. All pages share one cluster.
package cluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"testing"

	"kube-queue.dev/kube-queue/test/built"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var (
	suite *harness.Suite
	// programs is a folder with kubectl, its plugin, jq and kube-queue-simulator.
	programs string
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// The pages of the kinds run at the same time, because they mostly wait.
	if err := flag.Set("test.parallel", "32"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	folder, err := os.MkdirTemp("", "kube-queue-docs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	programs = folder
	for _, p := range []struct{ module, path, name string }{
		{".", "kube-queue.dev/kube-queue/cmd/kube-queue-simulator", "kube-queue-simulator"},
		{".", "kube-queue.dev/kube-queue/cmd/kubectl-kube_queue", "kubectl-kube_queue"},
		{"hack/tools", "github.com/itchyny/gojq/cmd/gojq", "jq"},
	} {
		built, err := built.Programs(context.Background(), p.module, p.path)
		if err == nil {
			err = os.Symlink(filepath.Join(built, path.Base(p.path)), filepath.Join(folder, p.name))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	flag.Parse()
	operators := []string{"training-operator", "mpi-operator", "spark-operator", "kuberay", "trainer", "argo-workflows"}
	if testing.Short() {
		operators = nil // README.md needs none
	}
	return harness.Run(m, clustertest.Options{
		Operators: operators,
		NodeGPUs:  8,
		// A scene ends the jobs that end on its page.
		PodRunTime: harness.UntilFinished,
	}, func(s *harness.Suite) { suite = s })
}
