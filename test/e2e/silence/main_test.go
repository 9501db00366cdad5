// Package silence tests that no job waits without a word: whatever holds a job, within five seconds the job has an
// event that says what holds it and who can change that.
package silence

import (
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var suite *harness.Suite

// deadline is how long a job may be held without an event.
const deadline = 5 * time.Second

func TestMain(m *testing.M) {
	harness.Main(m, clustertest.Options{Operators: []string{"training-operator"}, CRDs: []string{"kuberay"}, PodRunTime: harness.UntilFinished,
		Taken: []string{"/pytorchjobs"}},
		func(s *harness.Suite) { suite = s })
}
