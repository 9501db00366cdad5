package e2e

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

// stopped is the Queue of the test, with the actions of its administrator.
type stopped struct {
	t *testing.T
	*harness.Env
}

const stoppedQueue = "root-stopped"

func (s stopped) put(stop schedulingv1alpha1.QueueStop) {
	s.t.Helper()
	queues := s.Queue.SchedulingV1alpha1().Queues(clustertest.Namespace)
	_, err := queues.Patch(s.t.Context(), stoppedQueue, types.MergePatchType, []byte(`{"spec":{"stop":"`+string(stop)+`"}}`), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = queues.Create(s.t.Context(), &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: stoppedQueue},
			Spec: schedulingv1alpha1.QueueSpec{Stop: stop}}, metav1.CreateOptions{})
	}
	harness.Must(s.t, err)
}

// isRequeued checks that a job that was released once is stopped and still active.
func (s stopped) isRequeued(resource schema.GroupVersionResource, kind, name string) {
	s.t.Helper()
	if event := s.WaitForEvent(name, "QueueStopped"); event.Type != "Normal" || event.Message != "Suspended to take the quota back: queue "+stoppedQueue+" was drained; the job is queued again and waits until the queue is resumed" {
		s.t.Errorf("%s event: %s", event.Type, event.Message)
	}
	unit := s.WaitForPhase(kind, name, "Enqueued")
	if unit.Status.Reason != "QueueStopped" || unit.Status.Attempts != 1 || unit.Spec.Active != nil && !*unit.Spec.Active {
		s.t.Errorf("%s waits with %+v, active %v", name, unit.Status, unit.Spec.Active)
	}
	if active, set := s.Object(resource, name).GetAnnotations()["scheduling.x-k8s.io/active"]; set {
		s.t.Errorf("%s was given annotation active %q", name, active)
	}
	if pods := s.Pods(name); len(pods) > 0 {
		s.t.Errorf("%d pods of %s are there", len(pods), name)
	}
}

// A queue is put on hold, released, drained, and continues in order of submission.
func aQueueIsStoppedAndContinues(t *testing.T, l *harness.Env) {
	t.Cleanup(func() {
		harness.Must(t, l.Queue.SchedulingV1alpha1().Queues(clustertest.Namespace).Delete(context.Background(), stoppedQueue, metav1.DeleteOptions{}))
	})
	s := stopped{t, l}
	s.put(schedulingv1alpha1.StopHold)
	l.TreeOf(`{name: stopped, namespaces: [stopped], max: {cpu: "4"}}`)
	l.Apply(tfjob{name: "train", workers: 1, cpu: "1", runs: harness.UntilFinished}.String() +
		job{name: "batch", cpu: "2", runs: harness.UntilFinished}.String())
	for kind, name := range map[string]string{"TFJob": "train", "Job": "batch"} {
		l.WaitForReason(kind, name, "QueueStopped")
		if event := l.WaitForEvent(name, "Queued"); event.Type != "Normal" {
			t.Errorf("the event is of type %s", event.Type)
		}
	}
	l.WaitForState(harness.TFJobs, "train", "Queuing")
	l.ExpectFree()

	s.put(schedulingv1alpha1.StopNone)
	l.WaitForPhase("TFJob", "train", "Running")
	l.WaitForPhase("Job", "batch", "Running")
	l.Apply(job{name: "late", cpu: "4", runs: time.Second}.String())
	l.WaitForReason("Job", "late", "QuotaExceeded")

	s.put(schedulingv1alpha1.StopDrain)
	s.isRequeued(harness.TFJobs, "TFJob", "train")
	s.isRequeued(harness.Jobs, "Job", "batch")
	l.WaitForState(harness.TFJobs, "train", "Queuing")
	if suspended, _, _ := unstructured.NestedBool(l.Object(harness.Jobs, "batch").Object, "spec", "suspend"); !suspended {
		t.Error("the Job is not suspended")
	}
	l.ExpectFree()

	// A job that has run before is released before one that was submitted later and would fit too.
	s.put(schedulingv1alpha1.StopNone)
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

// The small job would fit, but the large one is owed the lent quota. The large job needs all quota,
// so the small one was released first only if it ran first. The order of two decisions cannot be
// read from the times of writes.
func TestBorrowingIsPausedWithoutReclaim(t *testing.T) {
	l := suite.Env(t, "paused")
	suite.Both(t, enabled, "--reclaim=false")
	l.TreeOf(`{name: shared, max: {cpu: "4"}, children: [
		{name: owner, namespaces: [paused], min: {cpu: "4"}}, {name: borrower, namespaces: [paused]}]}`)
	of := func(quota string) string { return "kube-queue/quota-name: " + quota }
	l.Apply(job{name: "has-borrowed", cpu: "3", runs: harness.UntilFinished, labels: of("borrower")}.String())
	l.WaitForPhase("Job", "has-borrowed", "Running")
	l.Apply(job{name: "owed", cpu: "4", runs: time.Second, labels: of("owner")}.String())
	l.WaitForReason("Job", "owed", "QuotaExceeded")
	l.Apply(job{name: "small", cpu: "1", runs: time.Second, labels: of("borrower")}.String())
	l.WaitForReason("Job", "small", "BorrowingPaused")
	l.Finish(harness.Jobs, "has-borrowed")
	owed, small := l.WaitForPhase("Job", "owed", "Succeeded"), l.WaitForPhase("Job", "small", "Succeeded")
	if small.Status.DequeueTime.Before(owed.Status.DequeueTime) {
		t.Error("the small job went first")
	}
	l.ExpectFree()
}
