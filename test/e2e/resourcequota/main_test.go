// Package resourcequota tests kube-queue whole with the quota written as
// ResourceQuotas, on a real control plane, whose quota controller and admission keep to
// them too, with the unmodified operators and simulated nodes.
package resourcequota

import (
	"testing"

	"kube-queue.dev/kube-queue/test/lab"
	"kube-queue.dev/kube-queue/test/testcluster"
)

// site is shared by all tests: they run one after another.
var site *lab.Site

// enabled are the kinds that these tests use.
const enabled = "tfjob,job,rayjob,sparkapp"

// byResourceQuota is the environment that has the controller go by ResourceQuotas.
var byResourceQuota = []string{"QueueGroupPlugin=resourceQuota"}

func TestMain(m *testing.M) {
	lab.Main(m, testcluster.Options{
		Operators:  []string{"training-operator", "kuberay", "spark-operator"},
		PodRunTime: lab.UntilTold,
	}, func(s *lab.Site) { site = s })
}
