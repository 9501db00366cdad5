// Package random tests kube-queue with random jobs of most kinds, which are edited, scaled, copied, suspended by
// hand, deleted and orphaned while both programs are killed, on a real control plane with the unmodified operators.
// Package plan draws the steps from a seed, and package oracle checks the accounting against the pods.
//
// Two kinds are left out: MPIJob v2beta1, whose operator replaces the MPIJob of training-operator, and TrainJob,
// whose runtime describes the pods, so they cannot have a label of their job.
package random

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var suite *harness.Suite

func TestMain(m *testing.M) {
	harness.Main(m, clustertest.Options{
		Operators:  []string{"training-operator", "kuberay", "spark-operator", "jobset", "argo-workflows"},
		PodRunTime: harness.UntilFinished,
		// The nodes are large enough that only quotas limit jobs.
		NodeCPU: "100", NodeMemory: "400Gi",
	}, func(s *harness.Suite) {
		suite = s
		suite.StatusInterval = 5 * time.Second // as in production, so that the audit checker can judge it
	})
}
