package e2e

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
)

// A queue is stopped, resumed and drained, and continues in the order of submission.
func TestAQueueIsStoppedAndContinues(t *testing.T) {
	l := suite.Env(t, "stopped")
	suite.Both(t, enabled)
	const queue = "root-stopped"
	isRequeued := func(resource schema.GroupVersionResource, kind, name string) {
		t.Helper()
		if event := l.WaitForEvent(name, "QueueStopped"); event.Type != "Normal" || event.Message != "Suspended: queue "+queue+" was drained; the job is queued again and waits until the queue is resumed" {
			t.Errorf("%s event: %s", event.Type, event.Message)
		}
		unit := l.WaitForPhase(kind, name, "Enqueued")
		if unit.Status.Reason != "QueueStopped" || unit.Status.Attempts != 1 || unit.Spec.Active != nil && !*unit.Spec.Active {
			t.Errorf("%s waits with %+v, active %v", name, unit.Status, unit.Spec.Active)
		}
		if active, set := l.Object(resource, name).GetAnnotations()["scheduling.x-k8s.io/active"]; set {
			t.Errorf("%s was given annotation active %q", name, active)
		}
		if pods := l.Pods(name); len(pods) > 0 {
			t.Errorf("%d pods of %s are there", len(pods), name)
		}
	}
	l.CreateQueue(queue, schedulingv1alpha1.QueueSpec{Stop: schedulingv1alpha1.StopHold})
	l.TreeOf(`{name: stopped, namespaces: [stopped], max: {cpu: "4"}}`)
	l.Apply(harness.TFJob{Name: "train", Servers: 1, Workers: 1, CPU: "1", Runs: harness.UntilFinished}.String() +
		harness.Job{Name: "batch", CPU: "2", Runs: harness.UntilFinished}.String())
	for kind, name := range map[string]string{"TFJob": "train", "Job": "batch"} {
		l.WaitForReason(kind, name, "QueueStopped")
		if event := l.WaitForEvent(name, "Queued"); event.Type != "Normal" {
			t.Errorf("the event is of type %s", event.Type)
		}
	}
	l.WaitForState(harness.TFJobs, "train", "Queuing")
	l.ExpectFree() // from now on, the status is known
	harness.Never(t, time.Second, "a queue on hold uses quota", func() (bool, string) {
		free, state := l.Free()
		return !free, state
	})

	l.PatchQueue(queue, `{"spec":{"stop":"None"}}`)
	l.WaitForPhase("TFJob", "train", "Running")
	l.WaitForPhase("Job", "batch", "Running")
	l.Apply(harness.Job{Name: "late", CPU: "4", Runs: time.Second}.String())
	l.WaitForReason("Job", "late", "QuotaExceeded")

	l.PatchQueue(queue, `{"spec":{"stop":"Drain"}}`)
	isRequeued(harness.TFJobs, "TFJob", "train")
	isRequeued(harness.Jobs, "Job", "batch")
	l.WaitForState(harness.TFJobs, "train", "Queuing")
	if suspended, _, _ := unstructured.NestedBool(l.Object(harness.Jobs, "batch").Object, "spec", "suspend"); !suspended {
		t.Error("the Job is not suspended")
	}
	l.ExpectFree()

	// A job that has run before is released before one that was submitted later and would also fit.
	l.PatchQueue(queue, `{"spec":{"stop":"None"}}`)
	train, batch := l.WaitForPhase("TFJob", "train", "Running"), l.WaitForPhase("Job", "batch", "Running")
	if train.Status.Attempts != 2 || batch.Status.Attempts != 2 {
		t.Errorf("%d and %d attempts, want 2", train.Status.Attempts, batch.Status.Attempts)
	}
	l.Finish(harness.TFJobs, "train")
	l.WaitForPhase("TFJob", "train", "Succeeded")
	l.Finish(harness.Jobs, "batch")
	l.WaitForPhase("Job", "batch", "Succeeded")
	late := l.WaitForPhase("Job", "late", "Succeeded")
	if late.Status.Attempts != 1 {
		t.Errorf("the last job was released %d times", late.Status.Attempts)
	}
	l.ExpectFree()
}

func TestAQueueInAnotherNamespaceIsRefused(t *testing.T) {
	l := suite.Env(t, "misplaced")
	out, err := suite.KubectlWith(t.Context(), "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: Queue\nmetadata: {name: mine, namespace: "+l.Namespace+"}\nspec: {policy: Block}\n", "create", "-f", "-")
	if want := "a Queue in namespace " + l.Namespace + " has no effect; create it in namespace kube-queue"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s%v, want it refused with %q", out, err, want)
	}
}
