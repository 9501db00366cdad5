// Package pods releases the operators' own examples, each operator running on a
// cluster of its own, and compares what each example's unit asks for with what its
// pods do: the greatest sum of requests over all pods that exist at one time.
//
// No pod ends here, and none waits for a machine: one that the scheduler has no
// node for, as one that asks for a TPU, is bound all the same, since operators make
// some pods only once others run.
package pods

import (
	"fmt"
	"os"
	"testing"

	"kube-queue.dev/kube-queue/test/harness"
)

// programs are built once for all clusters.
var programs harness.Builder

func TestMain(m *testing.M) {
	code := m.Run()
	if err := programs.Clean(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func TestTrainingOperator(t *testing.T) { compare(t, "training-operator") }

func TestMPIOperator(t *testing.T) { compare(t, "mpi-operator") }

func TestSparkOperator(t *testing.T) { compare(t, "spark-operator") }

func TestKubeRay(t *testing.T) { compare(t, "kuberay") }

func TestJobSet(t *testing.T) { compare(t, "jobset") }
