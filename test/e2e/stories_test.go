package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/audit"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/require"
)

// The jobs of the demo: two TFJobs of 3 cpu with a quota of 4.
func TestAPairOfTFJobsRunsOneAfterTheOther(t *testing.T) {
	l := suite.Env(t, "default")
	suite.Both(t, enabled)
	l.ApplyAsIs(l.Read("quota-tree.yaml"))
	unit := l.RunPair("root.defaultQuotaGroup", "cpu", "requested 3", "used 3 of max 4")
	if got := unit.Spec.Resource; got.Cpu().String() != "3" || got.Memory().String() != "3Gi" {
		t.Errorf("job2 requests %v, want 3 cpu and 3Gi", got)
	}
	queued := l.WaitForEvent("job2", "Queued")
	require.Says(t, "the event Queued", queued.Message, unit.Name, "QuotaExceeded")
	l.ExpectFree()

	log := l.Log(t.Context())
	two, err := log.Life("TFJob", l.Namespace, "job2")
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

// The users' tree allows ten jobs.
func TestTheJobAfterTheLastOfMaxJobsWaits(t *testing.T) {
	for _, c := range []struct {
		oversell string
		most     int
	}{{"1", 10}, {"1.2", 12}} {
		t.Run("oversell rate "+c.oversell, func(t *testing.T) {
			l := suite.Env(t, "default")
			l.Audit.Oversell = c.oversell
			suite.Both(t, enabled, "--oversell-rate="+c.oversell)
			l.ApplyAsIs(l.Read("max-jobs.yaml"))
			var names []string
			for range c.most + 1 {
				names = append(names, l.Create(l.Read("job.yaml")))
			}
			unit := l.WaitForReason("Job", names[c.most], "MaxJobs")
			if want := fmt.Sprintf("used %[1]d of max %[1]d (kube-queue/max-jobs)", c.most); !strings.Contains(unit.Status.Message, want) {
				t.Errorf("the message is %q, want %q", unit.Status.Message, want)
			}
			for _, name := range names[:c.most] {
				l.WaitForPhase("Job", name, "Dequeued", "Running")
			}
			for _, name := range names[:c.most] {
				l.Finish(harness.Jobs, name)
			}
			l.WaitForPhase("Job", names[c.most], "Running")
			l.Finish(harness.Jobs, names[c.most])
			for _, name := range names {
				l.WaitForPhase("Job", name, "Succeeded")
			}
			l.ExpectFree()
		})
	}
}

func TestTheControllerRestartsFromTheObjectsAlone(t *testing.T) {
	l := suite.Env(t, "restart")
	c, _ := suite.Both(t, enabled)
	l.Tree(`{cpu: "2"}`)
	l.Apply(harness.Job{Name: "one", CPU: "2", Runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "one", "Dequeued", "Running")
	l.Apply(harness.Job{Name: "two", CPU: "2", Runs: time.Second}.String() +
		harness.Job{Name: "urgent", CPU: "2", Runs: time.Second, Annotations: `scheduling.x-k8s.io/priority: "5"`}.String())
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

// A job with a maximum run time of 3 s is evicted, the next job runs, and the evicted job runs again after its owner
// activates it. A job that its owner deactivates while both programs are down is evicted too.
func TestAJobIsEvictedAtItsMaximumRunTimeAndWhenDeactivated(t *testing.T) {
	l := suite.Env(t, "evicted")
	c, x := suite.Both(t, enabled)
	l.Tree(`{cpu: "3"}`)
	l.Apply(harness.Job{Name: "endless", CPU: "3", Runs: time.Hour, Annotations: `scheduling.x-k8s.io/max-exec-time-seconds: "3"`}.String())
	l.WaitForUnit("Job", "endless")
	l.Apply(harness.Job{Name: "next", CPU: "3", Runs: time.Second}.String())
	unit := l.WaitForReason("Job", "endless", "Inactive")
	if unit.Status.Phase != "Enqueued" || unit.Status.Attempts != 1 || !strings.HasPrefix(unit.Status.Message, "the job exceeded its maximum execution time of 3 s (annotation scheduling.x-k8s.io/max-exec-time-seconds); ") {
		t.Errorf("it is %s after %d attempts: %s", unit.Status.Phase, unit.Status.Attempts, unit.Status.Message)
	}
	if event := l.WaitForEvent("endless", "MaximumExecutionTime"); event.Type != "Warning" {
		t.Errorf("the event is of type %s", event.Type)
	}
	if active := l.Object(harness.Jobs, "endless").GetAnnotations()["scheduling.x-k8s.io/active"]; active != "false" {
		t.Errorf("annotation active is %q", active)
	}
	l.WaitForPhase("Job", "next", "Succeeded")
	l.Patch(harness.Jobs, "endless", `{"metadata":{"annotations":{"scheduling.x-k8s.io/active":"true","scheduling.x-k8s.io/max-exec-time-seconds":null}}}`)
	l.WaitForPhase("Job", "endless", "Running")
	x.Kill()
	l.Patch(harness.Jobs, "endless", `{"metadata":{"annotations":{"scheduling.x-k8s.io/active":"false"}}}`)
	c.Kill()
	x.Start()
	c.Start()
	unit = l.WaitForReason("Job", "endless", "Inactive")
	if unit.Status.Attempts != 2 || unit.Status.Phase != "Enqueued" {
		t.Errorf("it is %s after %d attempts", unit.Status.Phase, unit.Status.Attempts)
	}
	if pods := l.Pods("endless"); len(pods) > 0 {
		t.Errorf("%d pods are there", len(pods))
	}
}

// Such a job would never be released, and would keep its quota for ever.
func TestNoJobOfAKindThatIsSwitchedOffIsAdmitted(t *testing.T) {
	l := suite.Env(t, "switched-off")
	_, on := suite.Both(t, enabled)
	l.Tree(`{cpu: "2"}`)
	l.Apply(harness.Job{Name: "runs", CPU: "2", Runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "runs", "Running")
	l.Apply(harness.Job{Name: "waits", CPU: "2", Runs: time.Second}.String())
	l.WaitForReason("Job", "waits", "QuotaExceeded")
	on.Stop()
	off := suite.Program(t, harness.Extensions, "--enabled-extensions=tfjob").Start()
	l.WaitForReason("Job", "waits", "KindNotQueued", "add job to its --enabled-extensions")
	l.Delete(harness.Jobs, "runs")
	l.ExpectFree()
	off.Stop()
	suite.Program(t, harness.Extensions, "--enabled-extensions="+enabled).Start()
	l.WaitForPhase("Job", "waits", "Succeeded")
}

// A finalizer of another program keeps the deleted job, so the garbage collector deletes neither its pods nor its unit.
func TestADeletedJobWithoutPodsGivesItsQuotaBack(t *testing.T) {
	l := suite.Env(t, "finalizer")
	suite.Both(t, enabled)
	l.Tree(`{cpu: "1"}`)
	l.Apply(harness.Job{Name: "kept", CPU: "1", Runs: harness.UntilFinished}.String())
	l.WaitForPhase("Job", "kept", "Running")
	l.Patch(harness.Jobs, "kept", `{"metadata":{"finalizers":["example.com/keep"]}}`)
	defer l.Patch(harness.Jobs, "kept", `{"metadata":{"finalizers":null}}`)
	l.Delete(harness.Jobs, "kept")
	harness.Must(t, l.Kube.CoreV1().Pods(l.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{}))
	l.Apply(harness.Job{Name: "next", CPU: "1", Runs: time.Second}.String())
	l.WaitForPhase("Job", "next", "Succeeded")
	unit := l.WaitForPhase("Job", "kept", "Failed")
	if end := apimeta.FindStatusCondition(unit.Status.Conditions, "Finished"); end == nil || !strings.Contains(end.Message, "example.com/keep") {
		t.Errorf("its unit shows %+v", end)
	}
}

// changesJobs acts like a webhook of somebody else: each update of a job also changes a label and an annotation.
const changesJobs = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: changes-jobs}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [batch], apiVersions: [v1], operations: [UPDATE], resources: [jobs]}]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{metadata: Object.metadata{labels: {"example.com/changed-after": oldObject.metadata.resourceVersion},
          annotations: {"example.com/last-change-by": request.userInfo.username}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: changes-jobs}
spec: {policyName: changes-jobs, matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: changed}}}}
`

func TestAPolicyOfOthersThatChangesJobsStopsNoReleaseAndNoEviction(t *testing.T) {
	l := suite.Env(t, "changed")
	suite.Both(t, enabled)
	l.ApplyAsIs(changesJobs)
	t.Cleanup(func() {
		_, err := suite.Kubectl(context.Background(), "delete", "mutatingadmissionpolicy,mutatingadmissionpolicybinding", "changes-jobs")
		harness.Must(t, err)
	})
	l.Apply(harness.Job{Name: "job", CPU: "1", Runs: harness.UntilFinished}.String())
	changedBy := func() string { return l.Object(harness.Jobs, "job").GetAnnotations()["example.com/last-change-by"] }
	harness.Eventually(t, time.Minute, "the policy is in effect", func() (bool, string) {
		l.Patch(harness.Jobs, "job", `{"metadata":{"annotations":{"example.com/patched":"true"}}}`)
		return changedBy() != "", "it is not"
	})
	l.Tree(`{cpu: "1"}`)
	l.WaitForPhase("Job", "job", "Running")
	if by := changedBy(); by != audit.Extensions {
		t.Errorf("the policy has seen a release by %s", by)
	}
	l.Patch(harness.Jobs, "job", `{"metadata":{"annotations":{"scheduling.x-k8s.io/active":"false"}}}`)
	l.WaitForReason("Job", "job", "Inactive")
	if by := changedBy(); by != audit.Extensions {
		t.Errorf("the policy has seen a suspension by %s", by)
	}
	l.ExpectFree()
}

// No node has the label that the pod needs.
func TestAJobWhosePodsAreNeverReadyLeavesItsQuotaToOthers(t *testing.T) {
	l := suite.Env(t, "never-ready")
	suite.Both(t, enabled)
	// The status of a Job shows up to a second later that its pod is ready.
	l.CreateQueue("root-never-ready", schedulingv1alpha1.QueueSpec{PodsReadyTimeout: &metav1.Duration{Duration: 5 * time.Second}})
	l.TreeOf(`{name: never-ready, namespaces: [never-ready], max: {cpu: "1"}}`)
	l.Apply(strings.Replace(harness.Job{Name: "broken", CPU: "1"}.String(), "restartPolicy: Never", "restartPolicy: Never\n      nodeSelector: {example.com/none: here}", 1))
	var waits []time.Duration
	for tries := int32(1); tries <= 2; tries++ {
		var unit *schedulingv1alpha1.QueueUnit
		harness.Eventually(t, time.Minute, fmt.Sprintf("it has failed %d times", tries), func() (bool, string) {
			unit = l.WaitForUnit("Job", "broken")
			return unit.Status.Phase == schedulingv1alpha1.PhaseBackoff && unit.Status.RequeueState.Count == tries, fmt.Sprintf("%+v", unit.Status)
		})
		if unit.Status.Attempts != tries {
			t.Errorf("it failed %d times and was released %d times", tries, unit.Status.Attempts)
		}
		stopped := apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionEvicted).LastTransitionTime
		waits = append(waits, unit.Status.RequeueState.RequeueAt.Sub(stopped.Time))
		other := fmt.Sprint("other-", tries)
		l.Apply(harness.Job{Name: other, CPU: "1", Runs: time.Second}.String())
		l.WaitForPhase("Job", other, "Succeeded")
	}
	if waits[1] < waits[0]+5*time.Second { // 10 s and 20 s, from times in seconds
		t.Errorf("it waits for %v", waits)
	}
	l.WaitForEvent("broken", string(wellknown.ReasonPodsReadyTimeout))
}
