// Package frameworks reports the life of a job of each kind, end to end: on a real
// control plane, with the unmodified operator of its framework and simulated
// nodes; and what users' manifests must show, those of test/acceptance.
//
// Words. A framework is an operator with the kinds that it runs. A specimen is a
// kind with a manifest to make jobs from, that of test/acceptance/kinds; the story
// is the same for all. What a job's own status says is read by test/audit's row of
// the kind. A row is a user's manifest and what it must show.
//
// The frameworks of one test share a cluster, for its start costs more than a
// story. Only those run there that -run selects, so each can be reported alone:
//
//	go test ./test/frameworks -run TestFrameworks/kuberay
package frameworks

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"kube-queue.dev/kube-queue/test/harness"
)

// programs are built once for all clusters.
var programs harness.Builder

// sideBySide is how many stories are reported at a time: all, for they mostly wait.
const sideBySide = "32"

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if err := flag.Set("test.parallel", sideBySide); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := programs.Clean(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
