// Package reviews tests the reviews of group visibility.kube-queue.dev: their answers, who may see what, and that a
// missing answer affects nothing else.
package reviews

import (
	"flag"
	"log"
	"testing"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var suite *harness.Suite

func TestMain(m *testing.M) {
	// Stories wait most of the time. They should not wait for each other.
	if err := flag.Set("test.parallel", "12"); err != nil {
		log.Fatal(err)
	}
	harness.Main(m, clustertest.Options{PodRunTime: harness.UntilFinished}, func(s *harness.Suite) { suite = s })
}
