package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/test/harness"
)

// A manifest that is applied again, as GitOps tools do, neither restarts nor releases its job, in
// any state of the job.
func aManifestAppliedAgainChangesNothing(t *testing.T, l *harness.Env) {
	l.Tree(`{cpu: "3"}`)
	blocker := job{name: "blocker", cpu: "3", runs: harness.UntilFinished}.String()
	manifest := tfjob{name: "again", workers: 2, cpu: "1", runs: harness.UntilFinished}.String()
	l.Apply(blocker)
	l.WaitForPhase("Job", "blocker", "Dequeued", "Running")

	again := func(when string) {
		t.Helper()
		l.Apply(manifest)
		before := l.Unit("TFJob", "again")
		pods := podUIDs(l, "again")
		harness.Never(t, time.Second, "the manifest applied again while "+when+" changed something", func() (bool, string) {
			unit := l.Unit("TFJob", "again")
			if unit == nil || unit.UID != before.UID || unit.Status.Attempts < before.Status.Attempts {
				return true, "the unit is another"
			}
			for _, uid := range pods {
				if !strings.Contains(strings.Join(podUIDs(l, "again"), " "), uid) && !unit.Status.Phase.Ended() {
					return true, "a pod is gone"
				}
			}
			return false, ""
		})
	}
	l.Apply(manifest)
	l.WaitForState(harness.TFJobs, "again", "Queuing")
	again("queued")
	if n := len(l.Pods("again")); n != 0 {
		t.Fatalf("%d pods while queued", n)
	}
	l.Finish(harness.Jobs, "blocker")
	l.WaitForPhase("TFJob", "again", "Dequeued", "Running")
	again("released")
	l.WaitForPhase("TFJob", "again", "Running")
	again("running")
	l.Finish(harness.TFJobs, "again")
	l.WaitForPhase("TFJob", "again", "Succeeded")
	again("ended")
	if unit := l.Unit("TFJob", "again"); unit.Status.Attempts != 1 || unit.Status.Phase != "Succeeded" {
		t.Errorf("phase %s after %d attempts, want Succeeded after 1", unit.Status.Phase, unit.Status.Attempts)
	}
	l.WaitForState(harness.TFJobs, "again", "Succeeded")
	l.ExpectFree()
}

func podUIDs(l *harness.Env, job string) []string {
	var uids []string
	for _, pod := range l.Pods(job) {
		uids = append(uids, string(pod.UID))
	}
	return uids
}

func aJobUnsuspendedByHandWhileQueuedIsSuspendedAgain(t *testing.T, l *harness.Env) {
	l.Tree(`{cpu: "3"}`)
	l.Apply(job{name: "blocker", cpu: "3", runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "blocker", "Dequeued", "Running")
	l.Apply(job{name: "sly", cpu: "1", runs: time.Second}.String() +
		tfjob{name: "sly-tf", workers: 1, cpu: "1", runs: time.Second}.String())
	l.WaitForReason("Job", "sly", "QuotaExceeded")
	l.WaitForState(harness.TFJobs, "sly-tf", "Queuing")

	// The annotation is unchanged: the policy suspends the job again before it is stored.
	l.Patch(harness.TFJobs, "sly-tf", `{"spec":{"runPolicy":{"suspend":false}}}`)
	if suspend, _, _ := unstructured.NestedBool(l.Object(harness.TFJobs, "sly-tf").Object, "spec", "runPolicy", "suspend"); !suspend {
		t.Error("the policy let the TFJob go")
	}
	l.Patch(harness.Jobs, "sly", `{"spec":{"suspend":false}}`)
	harness.Eventually(t, 20*time.Second, "the job is suspended again", func() (bool, string) {
		suspend, _, _ := unstructured.NestedBool(l.Object(harness.Jobs, "sly").Object, "spec", "suspend")
		return suspend, "it is not"
	})
	harness.Eventually(t, 20*time.Second, "its pods are gone", func() (bool, string) { return len(l.Pods("sly")) == len(l.Pods("sly-tf")), "they are there" })
	found := false
	for _, e := range l.AllEvents("sly") {
		found = found || e.Type == "Warning" && strings.Contains(strings.ToLower(e.Message), "suspend")
	}
	if !found {
		t.Error("no event reports that the job was suspended again")
	}
	l.Finish(harness.Jobs, "blocker")
	l.WaitForPhase("Job", "sly", "Succeeded")
	l.WaitForPhase("TFJob", "sly-tf", "Succeeded")
	l.Allowed = []string{"early-pod", "write-budget"} // the job controller may be faster than job-extensions
}

func aJobSuspendedByHandAfterItsReleaseGivesItsQuotaBack(t *testing.T, l *harness.Env) {
	l.Tree(`{cpu: "3"}`)
	l.Apply(tfjob{name: "paused", workers: 2, cpu: "1", runs: harness.UntilFinished}.String())
	l.WaitForPhase("TFJob", "paused", "Running")
	l.Patch(harness.TFJobs, "paused", `{"spec":{"runPolicy":{"suspend":true}}}`)
	unit := l.WaitForReason("TFJob", "paused", "SuspendedByUser")
	if unit.Status.Phase != "Enqueued" {
		t.Errorf("phase is %s, want Enqueued", unit.Status.Phase)
	}
	l.ExpectFree()
	l.Apply(job{name: "other", cpu: "3", runs: 2 * time.Second}.String())
	l.WaitForPhase("Job", "other", "Succeeded")
	harness.Never(t, 2*time.Second, "the suspended job was released", func() (bool, string) {
		return l.Unit("TFJob", "paused").Status.Phase != "Enqueued", "it left its place"
	})

	// Resumed by hand, it is queued again and runs.
	l.Patch(harness.TFJobs, "paused", `{"spec":{"runPolicy":{"suspend":false}}}`)
	l.WaitForPhase("TFJob", "paused", "Running")
	l.Finish(harness.TFJobs, "paused")
	unit = l.WaitForPhase("TFJob", "paused", "Succeeded")
	if unit.Status.Attempts != 2 {
		t.Errorf("%d attempts, want 2", unit.Status.Attempts)
	}
	l.ExpectFree()
	l.Allowed = []string{"early-pod", "write-budget"}
}

func jobsOfOthersAreNotTouched(t *testing.T, l *harness.Env) {
	l.Tree(`{cpu: "4"}`)
	l.Apply(job{name: "kueue", cpu: "1", labels: "kueue.x-k8s.io/queue-name: theirs"}.String())
	managed := strings.Replace(job{name: "managed", cpu: "1"}.String(), "spec:\n", "spec:\n  managedBy: example.com/another\n", 1)
	l.Apply(managed)
	l.Apply(tfjob{name: "unmarked", workers: 1, cpu: "1", runs: time.Second, annotation: "false"}.String())
	before := map[string]string{}
	for _, name := range []string{"kueue", "managed"} {
		before[name] = l.Object(harness.Jobs, name).GetResourceVersion()
	}
	l.Apply(job{name: "ours", cpu: "1", runs: time.Second}.String()) // its unit shows that all earlier jobs were seen
	l.WaitForPhase("Job", "ours", "Succeeded")
	for _, name := range []string{"kueue", "managed"} {
		object := l.Object(harness.Jobs, name)
		if suspend, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend"); !suspend || len(object.GetAnnotations()["kube-queue/released"]) > 0 {
			t.Errorf("%s was released", name)
		}
		if l.Unit("Job", name) != nil {
			t.Errorf("%s has a unit", name)
		}
	}
	l.WaitForState(harness.TFJobs, "unmarked", "Succeeded")
	if l.Unit("TFJob", "unmarked") != nil {
		t.Error("the unmarked TFJob has a unit")
	}
}

func aJobWithoutQuotaShowsTheReasonOnUnitAndJob(t *testing.T, l *harness.Env) {
	l.TreeOf(`{name: team, namespaces: [elsewhere], max: {cpu: "4"}}`)
	l.Apply(job{name: "lost", cpu: "1", runs: time.Second}.String())
	unit := l.WaitForReason("Job", "lost", "NoQuota")
	if !strings.Contains(unit.Status.Message, "nowhere") {
		t.Errorf("the message does not name the namespace: %q", unit.Status.Message)
	}
	event := l.WaitForEvent("lost", "Queued")
	if event.Type != "Warning" || !strings.Contains(event.Message, "NoQuota") {
		t.Errorf("event %s: %q, want a Warning with NoQuota", event.Type, event.Message)
	}
	out, err := suite.Kubectl(t.Context(), "-n", l.Namespace, "describe", "job", "lost")
	harness.Must(t, err)
	if !strings.Contains(out, "NoQuota") {
		t.Errorf("kubectl describe does not say NoQuota:\n%s", out)
	}
}

// After the programs, and then all objects, are removed, unmarked jobs are created and run as
// usual.
func TestWithKubeQueueRemovedUnmarkedJobsRunAsUsual(t *testing.T) {
	l := suite.Env(t, "after")
	run := func(name string) {
		t.Helper()
		plain := job{name: name, cpu: "1", runs: time.Second, unheld: true}.String()
		l.Apply(plain + tfjob{name: name + "-tf", workers: 1, cpu: "1", runs: time.Second, annotation: "false"}.String())
		harness.Eventually(t, time.Minute, name+" is Complete", func() (bool, string) { return l.HasCondition(harness.Jobs, name, "Complete"), "it is not" })
		l.WaitForState(harness.TFJobs, name+"-tf", "Succeeded")
	}
	run("programs-gone")

	deploy := filepath.Join(suite.Repository, "deploy")
	for _, folder := range []string{"policies", "rbac"} {
		out, err := suite.Kubectl(t.Context(), "delete", "--ignore-not-found", "-f", filepath.Join(deploy, folder))
		if err != nil {
			t.Fatal(err, out)
		}
	}
	run("policies-gone")
	out, err := suite.Kubectl(t.Context(), "delete", "--ignore-not-found", "-f", filepath.Join(deploy, "crds"))
	if err != nil {
		t.Fatal(err, out)
	}
	run("all-gone")
	harness.Must(t, suite.Install(t.Context())) // and it can be installed again
}
