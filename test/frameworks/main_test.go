// Package frameworks tells the life of a job of each kind, end to end: on a real
// control plane, with the unmodified operator of its framework and simulated
// nodes. Each framework has a cluster of its own, so its tests can be run alone:
//
//	go test ./test/frameworks -run TestKubeRay
//
// A specimen is a kind of job with a manifest to make jobs from; the story is the
// same for all.
package frameworks

import (
	"fmt"
	"os"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/lab"
	"kube-queue.dev/kube-queue/test/testcluster"
)

// programs are built once for all clusters.
var programs lab.Builder

func TestMain(m *testing.M) {
	code := m.Run()
	if err := programs.Clean(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// site starts a cluster with the operators.
func site(t *testing.T, operators ...string) *lab.Site {
	t.Helper()
	return programs.Site(t, testcluster.Options{Operators: operators, PodRunTime: 3 * time.Second})
}
