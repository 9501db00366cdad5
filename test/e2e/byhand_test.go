package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A manifest that is applied again, as GitOps does all the time, restarts nothing
// and releases nothing early, whatever its job is doing.
func TestAManifestAppliedAgainChangesNothing(t *testing.T) {
	l := newLab(t, "gitops")
	both(t)
	l.tree(`{cpu: "3"}`)
	blocker := job{name: "blocker", cpu: "3", runs: 5 * time.Second}.String()
	manifest := tfjob{name: "again", workers: 2, cpu: "1", runs: 6 * time.Second}.String()
	l.apply(blocker)
	l.waitForPhase("Job", "blocker", "Dequeued", "Running")

	again := func(when string) {
		t.Helper()
		l.apply(manifest)
		before := l.unit("TFJob", "again")
		pods := l.podUIDs("again")
		never(t, time.Second, "the manifest applied again while "+when+" changed something", func() (bool, string) {
			unit := l.unit("TFJob", "again")
			if unit == nil || unit.UID != before.UID || unit.Status.Attempts < before.Status.Attempts {
				return true, "the unit is another"
			}
			for _, uid := range pods {
				if !strings.Contains(strings.Join(l.podUIDs("again"), " "), uid) && !unit.Status.Phase.Ended() {
					return true, "a pod is gone"
				}
			}
			return false, ""
		})
	}
	l.apply(manifest)
	l.waitForState(tfjobs, "again", "Queuing")
	again("queued")
	if n := len(l.pods("again")); n != 0 {
		t.Fatalf("%d pods while queued", n)
	}
	l.waitForPhase("TFJob", "again", "Dequeued", "Running")
	again("released")
	l.waitForPhase("TFJob", "again", "Running")
	again("running")
	l.waitForPhase("TFJob", "again", "Succeeded")
	again("ended")
	if unit := l.unit("TFJob", "again"); unit.Status.Attempts != 1 || unit.Status.Phase != "Succeeded" {
		t.Errorf("phase %s after %d attempts, want Succeeded after 1", unit.Status.Phase, unit.Status.Attempts)
	}
	l.waitForState(tfjobs, "again", "Succeeded")
	l.expectFree()
}

func (l *lab) podUIDs(job string) []string {
	l.t.Helper()
	var uids []string
	for _, pod := range l.pods(job) {
		uids = append(uids, string(pod.UID))
	}
	return uids
}

func TestAJobUnsuspendedByHandWhileQueuedIsSuspendedAgain(t *testing.T) {
	l := newLab(t, "byhand")
	both(t)
	l.tree(`{cpu: "3"}`)
	l.apply(job{name: "blocker", cpu: "3", runs: 6 * time.Second}.String())
	l.waitForPhase("Job", "blocker", "Dequeued", "Running")
	l.apply(job{name: "sly", cpu: "1", runs: time.Second}.String() +
		tfjob{name: "sly-tf", workers: 1, cpu: "1", runs: time.Second}.String())
	l.waitForReason("Job", "sly", "QuotaExceeded")
	l.waitForState(tfjobs, "sly-tf", "Queuing")

	// The annotation left as it is: the policy turns it back before anything sees it.
	l.patch(tfjobs, "sly-tf", `{"spec":{"runPolicy":{"suspend":false}}}`)
	if suspend, _, _ := unstructured.NestedBool(l.object(tfjobs, "sly-tf").Object, "spec", "runPolicy", "suspend"); !suspend {
		t.Error("the policy let the TFJob go")
	}
	l.patch(jobs, "sly", `{"spec":{"suspend":false}}`)
	eventually(t, 20*time.Second, "the job is suspended again", func() (bool, string) {
		suspend, _, _ := unstructured.NestedBool(l.object(jobs, "sly").Object, "spec", "suspend")
		return suspend, "it is not"
	})
	eventually(t, 20*time.Second, "its pods are gone", func() (bool, string) { return len(l.pods("sly")) == len(l.pods("sly-tf")), "they are there" })
	found := false
	for _, e := range l.allEvents("sly") {
		found = found || e.Type == "Warning" && strings.Contains(strings.ToLower(e.Message), "suspend")
	}
	if !found {
		t.Error("no event tells that the job was suspended again")
	}
	l.waitForPhase("Job", "sly", "Succeeded")
	l.waitForPhase("TFJob", "sly-tf", "Succeeded")
	l.allowed = []string{"early-pod", "write-budget"} // the job controller may have been quicker than any program
}

func TestAJobSuspendedByHandAfterItsReleaseGivesItsQuotaBack(t *testing.T) {
	l := newLab(t, "byhand2")
	both(t)
	l.tree(`{cpu: "3"}`)
	l.apply(tfjob{name: "paused", workers: 2, cpu: "1", runs: 4 * time.Second}.String())
	l.waitForPhase("TFJob", "paused", "Running")
	l.patch(tfjobs, "paused", `{"spec":{"runPolicy":{"suspend":true}}}`)
	unit := l.waitForReason("TFJob", "paused", "SuspendedByUser")
	if unit.Status.Phase != "Enqueued" {
		t.Errorf("phase is %s, want Enqueued", unit.Status.Phase)
	}
	l.expectFree()
	l.apply(job{name: "other", cpu: "3", runs: 2 * time.Second}.String())
	l.waitForPhase("Job", "other", "Succeeded")
	never(t, 2*time.Second, "the suspended job was released", func() (bool, string) {
		return l.unit("TFJob", "paused").Status.Phase != "Enqueued", "it left its place"
	})

	// Taken up again by hand, it stands in line like any other and runs.
	l.patch(tfjobs, "paused", `{"spec":{"runPolicy":{"suspend":false}}}`)
	unit = l.waitForPhase("TFJob", "paused", "Succeeded")
	if unit.Status.Attempts != 2 {
		t.Errorf("%d attempts, want 2", unit.Status.Attempts)
	}
	l.expectFree()
	l.allowed = []string{"early-pod", "write-budget"}
}

func TestJobsOfOthersAreNotTouched(t *testing.T) {
	l := newLab(t, "others")
	both(t)
	l.tree(`{cpu: "4"}`)
	l.apply(job{name: "kueue", cpu: "1", labels: "kueue.x-k8s.io/queue-name: theirs"}.String())
	owner, err := l.kube.CoreV1().ConfigMaps(l.namespace).Create(t.Context(), configMap("owner"), metav1.CreateOptions{})
	must(t, err)
	owned := strings.Replace(job{name: "owned", cpu: "1"}.String(), "  labels: {}\n",
		"  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: "+string(owner.UID)+", controller: true}]\n", 1)
	l.apply(owned)
	managed := strings.Replace(job{name: "managed", cpu: "1"}.String(), "spec:\n", "spec:\n  managedBy: example.com/another\n", 1)
	l.apply(managed)
	l.apply(tfjob{name: "unmarked", workers: 1, cpu: "1", runs: time.Second, annotation: "false"}.String())
	before := map[string]string{}
	for _, name := range []string{"kueue", "owned", "managed"} {
		before[name] = l.object(jobs, name).GetResourceVersion()
	}
	l.apply(job{name: "ours", cpu: "1", runs: time.Second}.String()) // to know that all was seen
	l.waitForPhase("Job", "ours", "Succeeded")
	for _, name := range []string{"kueue", "owned", "managed"} {
		object := l.object(jobs, name)
		if suspend, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend"); !suspend || len(object.GetAnnotations()["kube-queue/released"]) > 0 {
			t.Errorf("%s was released", name)
		}
		if l.unit("Job", name) != nil {
			t.Errorf("%s has a unit", name)
		}
	}
	l.waitForState(tfjobs, "unmarked", "Succeeded")
	if l.unit("TFJob", "unmarked") != nil {
		t.Error("the unmarked TFJob has a unit")
	}
}

func TestAJobWithoutQuotaSaysSoAtUnitAndJob(t *testing.T) {
	l := newLab(t, "nowhere")
	both(t)
	l.treeOf(`{name: team, namespaces: [elsewhere], max: {cpu: "4"}}`)
	l.apply(job{name: "lost", cpu: "1", runs: time.Second}.String())
	unit := l.waitForReason("Job", "lost", "NoQuota")
	if !strings.Contains(unit.Status.Message, "nowhere") {
		t.Errorf("the message does not name the namespace: %q", unit.Status.Message)
	}
	event := l.waitForEvent("lost", "Queued")
	if event.Type != "Warning" || !strings.Contains(event.Message, "NoQuota") {
		t.Errorf("event %s: %q, want a Warning that says NoQuota", event.Type, event.Message)
	}
	out, err := cluster.Kubectl(t.Context(), "-n", l.namespace, "describe", "job", "lost")
	must(t, err)
	if !strings.Contains(out, "NoQuota") {
		t.Errorf("kubectl describe does not say NoQuota:\n%s", out)
	}
}

// With the programs gone, and then all objects as well, jobs that are not marked
// are created and run as if kube-queue had never been there.
func TestWithKubeQueueRemovedUnmarkedJobsRunAsEver(t *testing.T) {
	l := newLab(t, "after")
	run := func(name string) {
		t.Helper()
		plain := job{name: name, cpu: "1", runs: time.Second, unheld: true}.String()
		l.apply(plain + tfjob{name: name + "-tf", workers: 1, cpu: "1", runs: time.Second, annotation: "false"}.String())
		eventually(t, time.Minute, name+" is Complete", func() (bool, string) { return l.hasCondition(jobs, name, "Complete"), "it is not" })
		l.waitForState(tfjobs, name+"-tf", "Succeeded")
	}
	run("programs-gone")

	deploy := filepath.Join(cluster.Repository, "deploy")
	for _, folder := range []string{"policies", "rbac"} {
		out, err := cluster.Kubectl(t.Context(), "delete", "--ignore-not-found", "-f", filepath.Join(deploy, folder))
		if err != nil {
			t.Fatal(err, out)
		}
	}
	run("policies-gone")
	out, err := cluster.Kubectl(t.Context(), "delete", "--ignore-not-found", "-f", filepath.Join(deploy, "crds"))
	if err != nil {
		t.Fatal(err, out)
	}
	run("all-gone")
	must(t, cluster.Install(t.Context())) // and it can be installed again
}
