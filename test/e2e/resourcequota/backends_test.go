package resourcequota

import (
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/harness"
)

// The jobs of the demo with a ResourceQuota.
func TestAPairOfTFJobsRunsOneAfterTheOtherUnderAResourceQuota(t *testing.T) {
	l := newEnv(t, "default")
	suite.BothWith(t, enabled, byResourceQuota)
	l.Apply(l.Read("resource-quota.yaml"))
	l.RunPair("ResourceQuota default/default", "cpu", "requested 3", "used or reserved 3 of hard limit 4")
}

// The backend changes from elasticquota to resourcequota and back, with running and waiting jobs
// each time.
func TestJobsMoveFromOneQuotaBackendToAnotherAndBack(t *testing.T) {
	l := newEnv(t, "moving")
	// The tree admits jobs without ResourceQuotas, and a restarted program may repeat writes.
	l.Allowed = []string{"over-limit", "wrong-quota", "write-budget"}
	controller, _ := suite.Both(t, enabled)
	move := func(env []string, change func()) {
		t.Helper()
		controller.Stop()
		change()
		controller.Env = env
		controller.Start()
	}

	l.Tree(`{cpu: 4}`)
	l.Apply(tfjob("one", one("1"), one("1"), false) + job("two", one("1")))
	runs(t, l, "TFJob", "one")
	runs(t, l, "Job", "two")
	l.Apply(job("three", one("2")))
	l.WaitForReason("Job", "three", "QuotaExceeded", "quota root/team") // submitted first, so it is at the front
	l.Apply(spark("four", 1, "1", false) + rayjob("five", one("1"), one("1"), false))
	for kind, name := range map[string]string{"Job": "three", "SparkApplication": "four", "RayJob": "five"} {
		l.WaitForReason(kind, name, "QuotaExceeded", "quota root/team", "used 3 of max 4")
	}
	waitForQueues(t, "root-team", "moving")

	move(byResourceQuota, func() {
		l.Apply(quota("team", "cpu: 5"))
		waitForStatus(t, l)
	})
	runs(t, l, "Job", "three") // uses the remaining 2
	for kind, name := range map[string]string{"SparkApplication": "four", "RayJob": "five"} {
		l.WaitForReason(kind, name, "QuotaExceeded", "ResourceQuota moving/team", "used or reserved 5 of hard limit 5")
	}
	waitForQueues(t, "moving", "root-team")
	end(l, "Job", "two")
	l.Apply(job("six", one("1"))) // it fits, unlike four and five
	runs(t, l, "Job", "six")

	move(nil, func() { l.Delete(harness.ResourceQuotas, "team") })
	for kind, name := range map[string]string{"SparkApplication": "four", "RayJob": "five"} {
		l.WaitForReason(kind, name, "QuotaExceeded", "quota root/team", "used 5 of max 4")
		held(t, l, kind, name)
	}
	waitForQueues(t, "root-team", "moving")
	end(l, "Job", "three")
	end(l, "Job", "six")
	runs(t, l, "SparkApplication", "four")
	held(t, l, "RayJob", "five")

	move(byResourceQuota, func() {})
	runs(t, l, "RayJob", "five") // there is no ResourceQuota any more
	waitForQueues(t, "", "root-team")
	for kind, name := range map[string]string{"TFJob": "one", "SparkApplication": "four", "RayJob": "five"} {
		end(l, kind, name)
	}
	for kind, names := range map[string][]string{"TFJob": {"one"}, "Job": {"two", "three", "six"}, "SparkApplication": {"four"}, "RayJob": {"five"}} {
		for _, name := range names {
			if unit := l.WaitForPhase(kind, name, "Succeeded"); unit.Status.Attempts != 1 {
				t.Errorf("%s was released %d times, want once", name, unit.Status.Attempts)
			}
		}
	}
}

// waitForQueues waits until one Queue exists and the other does not.
func waitForQueues(t testing.TB, there, gone string) {
	t.Helper()
	harness.Eventually(t, patience, "there is a Queue "+there+", and no Queue "+gone, func() (bool, string) {
		out, err := suite.Kubectl(t.Context(), "-n", "kube-queue", "get", "queues", "-o", "jsonpath={.items[*].metadata.name}")
		harness.Must(t, err)
		names := strings.Fields(out)
		return (there == "" || slices.Contains(names, there)) && !slices.Contains(names, gone), out
	})
}
