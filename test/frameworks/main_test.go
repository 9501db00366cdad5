// Package frameworks tests the life of a job of each kind, on a real control plane with the
// unmodified operator and simulated nodes, and the manifests of users in test/acceptance.
//
// Terms. A framework is an operator with the kinds that it runs. A specimen is a kind with the manifest of its jobs,
// from test/acceptance/kinds. A story is the sequence of steps, which is the same for all specimens. Tests read the
// status of jobs with the kind's row in test/audit. A row is a user's manifest and its expected life.
//
// The frameworks of one test share a cluster, because starting one takes longer than a story. The cluster has only
// the operators that -run selects:
//
//	go test ./test/frameworks -run TestFrameworks/kuberay
package frameworks

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

// sideBySide is the number of stories that run in parallel: all, because they mostly wait.
const sideBySide = "32"

// patience is the timeout of each wait. It is long because all stories run at the same time on few cores.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if err := flag.Set("test.parallel", sideBySide); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
