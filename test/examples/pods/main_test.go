// Package pods releases the examples of each operator on its own cluster. It compares the request of each unit with
// the largest sum of requests over all pods that exist at the same time.
//
// No pod ends, and no pod waits for a node. A pod that the scheduler cannot place, such as one that requests a TPU,
// is bound anyway, because operators create some pods only once others run.
package pods

import "testing"

func TestTrainingOperator(t *testing.T) { compare(t, "training-operator") }

func TestMPIOperator(t *testing.T) { compare(t, "mpi-operator") }

func TestSparkOperator(t *testing.T) { compare(t, "spark-operator") }

func TestKubeRay(t *testing.T) { compare(t, "kuberay") }

func TestJobSet(t *testing.T) { compare(t, "jobset") }
