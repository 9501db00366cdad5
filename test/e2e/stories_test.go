package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/test/harness"
)

// The jobs of the demo: two TFJobs of 3 cpu with a quota of 4.
func TestAPairOfTFJobsRunsOneAfterTheOther(t *testing.T) {
	l := suite.Env(t, "default")
	suite.Both(t, enabled)
	l.ApplyAsIs(l.Read("quota-tree.yaml"))
	l.Apply(l.Read("tfjob-pair.yaml"))

	l.WaitForState(harness.TFJobs, "job2", "Queuing")
	l.WaitForState(harness.TFJobs, "job1", "Running")
	unit := l.WaitForReason("TFJob", "job2", "QuotaExceeded")
	for _, word := range []string{"root.defaultQuotaGroup", "cpu", "requested 3", "used 3 of max 4"} {
		if !strings.Contains(unit.Status.Message, word) {
			t.Errorf("the message %q does not say %q", unit.Status.Message, word)
		}
	}
	if got := unit.Spec.Resource; got.Cpu().String() != "3" || got.Memory().String() != "3Gi" {
		t.Errorf("job2 requests %v, want 3 cpu and 3Gi", got)
	}
	queued := l.WaitForEvent("job2", "Queued")
	if !strings.Contains(queued.Message, unit.Name) || !strings.Contains(queued.Message, "QuotaExceeded") {
		t.Errorf("the event Queued contains neither unit nor reason: %q", queued.Message)
	}
	for _, name := range []string{"job1", "job2"} {
		l.WaitForPhase("TFJob", name, "Running")
		l.Finish(harness.TFJobs, name)
		l.WaitForPhase("TFJob", name, "Succeeded")
		l.WaitForState(harness.TFJobs, name, "Succeeded")
	}
	l.ExpectFree()

	l.ExpectOneAfterTheOther("TFJob", "job1", "job2")
	log := l.Log(t.Context())
	two, err := log.Life(l.Audit, "TFJob", l.Namespace, "job2")
	harness.Must(t, err)
	if !two.Saw("Queuing") {
		t.Error("job2 was never shown as Queuing")
	}
}

func TestAJobIsHeldBySuspendAndReleasedByIt(t *testing.T) {
	l := suite.Env(t, "default")
	name := l.Create(l.Read("job.yaml"))
	if suspend, _, _ := unstructured.NestedBool(l.Object(harness.Jobs, name).Object, "spec", "suspend"); !suspend {
		t.Fatal("the job is not suspended")
	}
	suite.Both(t, enabled)
	if unit := l.WaitForReason("Job", name, "NoQuota"); unit.Spec.Resource.Cpu().String() != "100m" || len(unit.Spec.Resource) != 1 {
		t.Errorf("the unit requests %v, want cpu 100m alone", unit.Spec.Resource)
	}
	l.ApplyAsIs(l.Read("quota-tree.yaml"))
	l.WaitForPhase("Job", name, "Running")
	l.Finish(harness.Jobs, name)
	l.WaitForPhase("Job", name, "Succeeded")
	if suspend, _, _ := unstructured.NestedBool(l.Object(harness.Jobs, name).Object, "spec", "suspend"); suspend {
		t.Error("the job is still suspended")
	}
	if !l.HasCondition(harness.Jobs, name, "Complete") {
		t.Error("the job is not Complete")
	}
	l.ExpectFree()
}

func TestTheEleventhJobWaitsForMaxJobs(t *testing.T) {
	l := suite.Env(t, "default")
	suite.Both(t, enabled)
	l.ApplyAsIs(l.Read("max-jobs.yaml"))
	var names []string
	for range 11 {
		names = append(names, l.Create(l.Read("job.yaml")))
	}
	last := names[10]
	unit := l.WaitForReason("Job", last, "MaxJobs")
	if !strings.Contains(unit.Status.Message, "used 10 of max 10 (kube-queue/max-jobs)") {
		t.Errorf("the message is %q", unit.Status.Message)
	}
	for _, name := range names[:10] {
		l.WaitForPhase("Job", name, "Dequeued", "Running")
	}
	for _, name := range names {
		l.Finish(harness.Jobs, name)
		l.WaitForPhase("Job", name, "Succeeded")
	}
	l.ExpectFree()
}

func TestOversellReleasesTwelveJobs(t *testing.T) {
	l := suite.Env(t, "default")
	l.Audit.Oversell = "1.2"
	suite.Both(t, enabled, "--oversell-rate=1.2")
	l.ApplyAsIs(l.Read("max-jobs.yaml"))
	var names []string
	for range 13 {
		names = append(names, l.Create(l.Read("job.yaml")))
	}
	l.WaitForReason("Job", names[12], "MaxJobs")
	for _, name := range names[:12] {
		l.WaitForPhase("Job", name, "Dequeued", "Running")
	}
	for _, name := range names {
		l.Finish(harness.Jobs, name)
		l.WaitForPhase("Job", name, "Succeeded")
	}
}

// Each job has its budget of writes by kube-queue, counted in the audit log:
// design rule 8 of docs/development/architecture.md.
func TestWritesPerJob(t *testing.T) {
	l := suite.Env(t, "writes")
	suite.Both(t, enabled)
	l.Tree(`{cpu: "4"}`)
	l.WaitForTree()

	l.Apply(job{name: "short", cpu: "1", runs: time.Second}.String())
	l.WaitForPhase("Job", "short", "Succeeded")
	l.Apply(job{name: "long", cpu: "4", runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "long", "Dequeued", "Running")
	l.Apply(job{name: "waited", cpu: "1", runs: 4 * time.Second}.String())
	l.WaitForEvent("waited", "Queued")
	l.WaitForPhase("Job", "long", "Running")
	l.Finish(harness.Jobs, "long")
	l.WaitForPhase("Job", "waited", "Succeeded")

	l.Apply(tfjob{name: "tf-long", workers: 3, cpu: "1", runs: harness.UntilFinished}.String())
	l.WaitForPhase("TFJob", "tf-long", "Dequeued", "Running")
	l.Apply(tfjob{name: "tf-waited", workers: 1, cpu: "1", runs: 4 * time.Second}.String())
	l.WaitForEvent("tf-waited", "Queued")
	l.WaitForState(harness.TFJobs, "tf-waited", "Queuing")
	l.WaitForPhase("TFJob", "tf-long", "Running")
	l.Finish(harness.TFJobs, "tf-long")
	l.WaitForPhase("TFJob", "tf-waited", "Succeeded")
	// There are no late writes.
	harness.Never(t, 3*time.Second, "a unit changed after its end", func() (bool, string) { return false, "" })

	table, err := l.Log(t.Context()).Writes(l.Audit)
	harness.Must(t, err)
	judged := 0
	for _, j := range table.Jobs {
		if j.Namespace != l.Namespace {
			continue
		}
		judged++
		waited, ran := strings.HasSuffix(j.Name, "waited"), j.Name != "short"
		// The budget of a job depends on whether it waited and ran long, which can happen on a slow
		// machine. The checker reports its budget.
		most := 5
		if j.Ran > 1900*time.Millisecond {
			most++
		}
		if j.Waited > 900*time.Millisecond {
			most += 2
			if j.Kind == "TFJob" {
				most += 2
			}
		}
		t.Logf("%-10s %2d writes of %d: %d on the job, %d on its unit, %d events; waited %v, ran %v",
			j.Name, j.Total(), most, j.OnJob, j.OnUnit, j.OnEvents, j.Waited, j.Ran)
		if j.Total() > most {
			t.Errorf("%s: %d writes, want %d at most: %v", j.Name, j.Total(), most, j.By)
		}
		if waited && j.Waited < time.Second || ran && j.Ran < 2*time.Second {
			t.Errorf("%s waited %v and ran %v: the story is not the one to be counted", j.Name, j.Waited, j.Ran)
		}
	}
	if judged != 5 {
		t.Errorf("%d jobs were counted, want 5", judged)
	}
}

func memoryLimitsOf2GiBAndMoreAreEnforced(t *testing.T, l *harness.Env) {
	l.Tree(`{memory: 4Gi}`)
	l.Apply(job{name: "one", memory: "3Gi", runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "one", "Dequeued", "Running")
	l.Apply(job{name: "two", memory: "2Gi", runs: time.Second}.String())
	unit := l.WaitForReason("Job", "two", "QuotaExceeded")
	if !strings.Contains(unit.Status.Message, "requested 2Gi, used 3Gi of max 4Gi") {
		t.Errorf("the message is %q", unit.Status.Message)
	}
	l.Apply(job{name: "never", memory: "5Gi"}.String())
	l.WaitForReason("Job", "never", "ExceedsMaxQuota")
	l.Finish(harness.Jobs, "one")
	l.WaitForPhase("Job", "two", "Succeeded")
}

func aNineLevelTreeLimitsAtEachLevel(t *testing.T, l *harness.Env) {
	node := `{name: deep, namespaces: [deep], max: {cpu: "9"}, children: null}`
	for level := 8; level >= 2; level-- {
		max := "9"
		if level == 6 {
			max = "2" // the one that counts
		}
		node = fmt.Sprintf(`{name: level-%d, max: {cpu: "%s"}, children: [%s]}`, level, max, node)
	}
	l.TreeOf(node)
	l.Apply(job{name: "one", cpu: "2", runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "one", "Dequeued", "Running")
	l.Apply(job{name: "two", cpu: "1", runs: time.Second}.String())
	unit := l.WaitForReason("Job", "two", "QuotaExceeded")
	if !strings.Contains(unit.Status.Message, "level-5/level-6:") {
		t.Errorf("the message is %q", unit.Status.Message)
	}
	l.Finish(harness.Jobs, "one")
	l.WaitForPhase("Job", "two", "Succeeded")
	l.ExpectFree()
}

func TestAnInvalidTreeLeavesTheLastValidOneInForce(t *testing.T) {
	l := suite.Env(t, "invalid")
	suite.Both(t, enabled)
	l.TreeOf(`{name: team, namespaces: [invalid], min: {cpu: "5"}, max: {cpu: "4"}}`)
	l.Apply(job{name: "zero", cpu: "1", runs: time.Second}.String())
	l.WaitForReason("Job", "zero", "InvalidQuotaTree")

	l.Tree(`{cpu: "4"}`)
	l.WaitForPhase("Job", "zero", "Succeeded")
	l.WaitForTree()

	for _, c := range []struct{ children, fault string }{
		{`{name: team, namespaces: [invalid], min: {cpu: "5"}, max: {cpu: "4"}}`, "min cpu 5 is above max 4"},
		{`{name: team, namespaces: [invalid]}, {name: team}`, `"team"`},
		{`{name: team, namespaces: [invalid], max: {cpu: "-1"}}`, "-1"},
		{`{name: "", namespaces: [invalid]}`, "no name"},
		{`{name: up, max: {cpu: "1"}, children: [{name: a, min: {cpu: "1"}}, {name: b, min: {cpu: "1"}, namespaces: [invalid]}]}`, "the sum of the children's min"},
		{`{name: a, children: [{name: b, children: [{name: c, children: [{name: d, children: [{name: e, namespaces: [invalid], max: {cpu: "much"}}]}]}]}]}`, "much"},
	} {
		l.TreeOf(c.children)
		harness.Eventually(t, 20*time.Second, "the tree reports "+c.fault, func() (bool, string) {
			status, message := l.TreeValidity()
			return status == "False" && strings.Contains(message, c.fault) && strings.Contains(message, "the last valid tree stays in force"), status + " " + message
		})
	}
	out, err := suite.Kubectl(t.Context(), "-n", "kube-system", "get", "events", "--field-selector=reason=InvalidQuotaTree", "-o", "name")
	harness.Must(t, err)
	if n := strings.Count(out, "event/"); n < 6 {
		t.Errorf("%d events InvalidQuotaTree, want one for each invalid tree", n)
	}

	// The last good tree: 4 cpu.
	l.Apply(job{name: "fits", cpu: "4", runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "fits", "Dequeued", "Running")
	l.Apply(job{name: "waits", cpu: "1", runs: time.Second}.String())
	l.WaitForReason("Job", "waits", "QuotaExceeded")
	l.Finish(harness.Jobs, "fits")
	l.WaitForPhase("Job", "waits", "Succeeded")
}

func TestASecondTreeIsIgnoredWithAnEvent(t *testing.T) {
	l := suite.Env(t, "default")
	suite.Both(t, enabled)
	l.Tree(`{cpu: "4"}`)
	// If two trees have the same creation time, the name decides.
	l.ApplyAsIs("apiVersion: scheduling.sigs.k8s.io/v1beta1\nkind: ElasticQuotaTree\nmetadata: {name: younger, namespace: kube-system}\nspec: {root: {name: root}}\n")
	harness.Eventually(t, 20*time.Second, "the younger tree has an event", func() (bool, string) {
		out, err := suite.Kubectl(t.Context(), "-n", "kube-system", "get", "events", "--field-selector=reason=IgnoredQuotaTree,involvedObject.name=younger", "-o", "name")
		return err == nil && out != "", out
	})
	l.Apply(job{name: "one", cpu: "1", runs: time.Second}.String())
	l.WaitForPhase("Job", "one", "Succeeded")
}

func aFailedJobGivesItsQuotaBack(t *testing.T, l *harness.Env) {
	l.Tree(`{cpu: "2"}`)
	l.Apply(job{name: "bad", cpu: "2", runs: 2 * time.Second, fails: true}.String() +
		tfjob{name: "bad-tf", workers: 1, cpu: "1", runs: 2 * time.Second, fails: true}.String())
	l.WaitForPhase("Job", "bad", "Failed")
	l.WaitForPhase("TFJob", "bad-tf", "Failed")
	l.ExpectFree()
}

func aDeletedJobGivesItsQuotaBack(t *testing.T, l *harness.Env) {
	l.Tree(`{cpu: "2"}`)
	l.Apply(job{name: "running", cpu: "2", runs: time.Hour}.String())
	l.WaitForPhase("Job", "running", "Running")
	l.Apply(job{name: "queued", cpu: "2", runs: time.Hour}.String() + job{name: "next", cpu: "1", runs: time.Second}.String())
	l.WaitForReason("Job", "queued", "QuotaExceeded")
	remove := func(name, how string) {
		t.Helper()
		if out, err := suite.Kubectl(t.Context(), "-n", l.Namespace, "delete", "job", name, "--cascade="+how); err != nil {
			t.Fatal(err, out)
		}
	}
	hasNoUnit := func(name string) {
		t.Helper()
		harness.Eventually(t, 30*time.Second, "the unit of "+name+" is gone", func() (bool, string) { return l.Unit("Job", name) == nil, "it is there" })
	}
	remove("queued", "background")
	hasNoUnit("queued")
	remove("running", "orphan")
	l.WaitForReason("Job", "running", "PodsRemain") // its pod continues
	l.WaitForReason("Job", "next", "QuotaExceeded")
	harness.Must(t, l.Kube.CoreV1().Pods(l.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	hasNoUnit("running")
	l.WaitForPhase("Job", "next", "Succeeded")
	l.ExpectFree()
}

func TestTheControllerRestartsFromTheObjectsAlone(t *testing.T) {
	l := suite.Env(t, "restart")
	c, _ := suite.Both(t, enabled)
	l.Tree(`{cpu: "2"}`)
	l.Apply(job{name: "one", cpu: "2", runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "one", "Dequeued", "Running")
	l.Apply(job{name: "two", cpu: "2", runs: time.Second}.String() +
		job{name: "urgent", cpu: "2", runs: time.Second, annotations: `scheduling.x-k8s.io/priority: "5"`}.String())
	l.WaitForReason("Job", "two", "QuotaExceeded")
	l.WaitForReason("Job", "urgent", "QuotaExceeded")
	c.Kill()
	c.Start()
	l.Finish(harness.Jobs, "one")
	urgent := l.WaitForPhase("Job", "urgent", "Succeeded")
	two := l.WaitForPhase("Job", "two", "Succeeded")
	if !urgent.Status.DequeueTime.Before(two.Status.DequeueTime) {
		t.Error("the job of lower priority went first")
	}
}

// A process writes an event once, and renews it before it expires. So does the next process,
// according to the age of the event.
func TestTheNextProcessRenewsAnEventThatWouldExpire(t *testing.T) {
	l := suite.Env(t, "renewed")
	_, extensions := suite.Both(t, enabled)
	l.Tree(`{cpu: "1"}`)
	l.Apply(job{name: "holds", cpu: "1", runs: harness.UntilFinished}.String() + job{name: "waits", cpu: "1", runs: time.Second}.String())
	l.WaitForPhase("Job", "holds", "Running")
	queued := l.WaitForEvent("waits", "Queued")
	extensions.Stop()
	old := metav1.NewTime(time.Now().Add(-45 * time.Minute))
	_, err := l.Kube.CoreV1().Events(l.Namespace).Patch(t.Context(), queued.Name, types.MergePatchType,
		[]byte(fmt.Sprintf(`{"lastTimestamp":%q}`, old.UTC().Format(time.RFC3339))), metav1.PatchOptions{})
	harness.Must(t, err)

	extensions.Start()
	harness.Eventually(t, 30*time.Second, "the event is reported again", func() (bool, string) {
		events := l.Events("waits", "Queued")
		if len(events) != 1 {
			return false, fmt.Sprintf("there are %d", len(events))
		}
		return events[0].Count == queued.Count+1 && time.Since(events[0].LastTimestamp.Time) < time.Minute, fmt.Sprint(events[0].Count, events[0].LastTimestamp)
	})
	l.Finish(harness.Jobs, "holds")
	l.WaitForPhase("Job", "waits", "Succeeded")
	l.ExpectFree()
}
