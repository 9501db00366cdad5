package controller

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// The Queue of the stage's tree.
const rootQueue = "root"

// setQueue changes the Queue like an administrator, or creates it.
func (s *stage) setQueue(spec string) {
	s.Helper()
	_, err := s.queues().Patch(s.Context(), rootQueue, types.MergePatchType, []byte(`{"spec": `+spec+`}`), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		s.create(s.queues(), `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue, metadata: {name: `+rootQueue+`}, spec: `+spec+`}`)
		return
	}
	must(s.T, err)
}

// queueShows waits until a number in the status of the Queue has this value.
func (s *stage) queueShows(field, want string) {
	s.Helper()
	s.eventually(fmt.Sprintf("the Queue has %s %s", field, want), func() string {
		queue, err := s.queues().Get(s.Context(), rootQueue, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		is, _, _ := unstructured.NestedFieldNoCopy(queue.Object, "status", field)
		if fmt.Sprint(is) == want {
			return ""
		}
		return fmt.Sprint("it is ", is)
	})
}

func (s *stage) says(name, want string) {
	s.Helper()
	if is := s.status(name, "message"); is != want {
		s.Errorf("%s says %q, want %q", name, is, want)
	}
}

func (s *stage) end(name string) {
	s.Helper()
	s.patch(name, `{"status": {"phase": "Succeeded"}}`, "status")
}

const stopped = "queue root is stopped; an administrator resumes it by setting spec.stop to None"

func TestAQueueOnHoldReleasesNothingAndKeepsRunningJobs(t *testing.T) {
	s := newStage(t)
	s.setQueue(`{stop: Hold}`)
	stop := startController(t)
	s.unit("first", `resource: {cpu: 1}`)
	s.becomes("first", "reason", "QueueStopped")
	s.says("first", stopped)
	s.queueShows("headReason", "QueueStopped")
	s.setQueue(`{"stop": "None"}`)
	s.becomes("first", "phase", "Dequeued")

	// The next process reads the setting from the Queue.
	stop()
	s.setQueue(`{"stop": "Hold"}`)
	startController(t)
	was := s.extensions().get("first")
	s.unit("second", `resource: {cpu: 1}`)
	s.becomes("second", "reason", "QueueStopped")
	s.used("1")
	if now := s.extensions().get("first"); now.ResourceVersion != was.ResourceVersion {
		t.Errorf("what runs was written: %+v", now.Status)
	}
	must(t, s.queues().Delete(t.Context(), rootQueue, metav1.DeleteOptions{}))
	s.becomes("second", "phase", "Dequeued")
	s.queueShows("dequeued", "2")
}

func TestADrainedQueueEvictsAllAndContinuesInOrder(t *testing.T) {
	s := newStage(t)
	e := s.extensions()
	stop := startController(t)
	s.unit("first", `resource: {cpu: 3}`)
	s.becomes("first", "phase", "Dequeued")
	s.unit("second", `resource: {cpu: 3}`)
	s.becomes("second", "reason", "QuotaExceeded")

	was := e.get("first")
	s.setQueue(`{"stop": "Drain"}`)
	now := e.nextWrite(was)
	expectEvicted(t, was, now, wellknown.ReasonQueueStopped, "queue root was drained; the job is queued again and waits until the queue is resumed")
	s.used("3")

	// After a restart no unit is evicted twice, and nothing is released.
	stop()
	startController(t)
	s.used("3")
	if again := e.get("first"); again.ResourceVersion != now.ResourceVersion {
		t.Fatalf("first is %+v", again.Status)
	}
	e.stop("first")
	s.becomes("first", "phase", "Enqueued")
	unit := e.get("first")
	if unit.Status.Reason != "QueueStopped" || unit.Status.Message != stopped ||
		apimeta.IsStatusConditionTrue(unit.Status.Conditions, wellknown.ConditionEvicted) {
		t.Errorf("it waits with %+v", unit.Status)
	}
	s.used("<nil>") // and nothing by the second, which would fit
	if phase := s.status("second", "phase"); phase != "Enqueued" {
		t.Errorf("second is %s", phase)
	}

	s.setQueue(`{"stop": "None"}`)
	s.becomes("first", "phase", "Dequeued")
	if unit := e.get("first"); unit.Status.Attempts != 2 || unit.Status.Reason != "" ||
		apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionEvicted) != nil {
		t.Errorf("released again it is %+v", unit.Status)
	}
	s.used("3")
	s.end("first")
	s.becomes("second", "phase", "Dequeued")
}

func TestAQueueCapsThePriorityOfItsUnits(t *testing.T) {
	s := newStage(t)
	s.setQueue(`{maxPriority: 5}`)
	startController(t)
	s.unit("holder", `resource: {cpu: 4}`)
	s.becomes("holder", "phase", "Dequeued")
	for i, unit := range []struct {
		name     string
		priority int
	}{{"early", 5}, {"middle", 7}, {"late", 100}} {
		s.unit(unit.name, fmt.Sprintf(`priority: %d, submissionTime: "2026-01-01T00:00:0%d.000000Z", resource: {cpu: 4}`, unit.priority, i))
		s.becomes(unit.name, "reason", "QuotaExceeded")
	}
	s.end("holder")
	s.becomes("early", "phase", "Dequeued") // the same priority as the others, and submitted earlier
	s.setQueue(`{"maxPriority": null, "policy": "Priority"}`)
	s.queueShows("policy", "Priority") // so the controller knows both
	s.end("early")
	s.becomes("late", "phase", "Dequeued")
	s.end("late")
	s.becomes("middle", "phase", "Dequeued")
}

func TestThePolicyOfAQueueIsChangedWhileUnitsWait(t *testing.T) {
	s := newStage(t)
	startController(t)
	s.unit("holder", `resource: {cpu: 2}`)
	s.becomes("holder", "phase", "Dequeued")
	s.unit("large", `resource: {cpu: 4}`)
	s.becomes("large", "reason", "QuotaExceeded")
	s.unit("passes", `resource: {cpu: 1}`)
	s.becomes("passes", "phase", "Dequeued")

	s.setQueue(`{"policy": "Block"}`)
	s.queueShows("policy", "Block")
	s.unit("blocked", `resource: {cpu: 1}`)
	s.becomes("blocked", "reason", "NotAtFront")
	s.says("blocked", "another unit is ahead in queue root, and policy Block admits only the front unit")
	s.used("3")
	s.setQueue(`{"policy": "RoundRobin"}`)
	s.becomes("blocked", "phase", "Dequeued")
	s.queueShows("policy", "RoundRobin")
	s.becomes("large", "phase", "Enqueued")
}

func TestUnknownSettingsAreRefused(t *testing.T) {
	s := newStage(t)
	s.setQueue(`{stop: Hold, maxPriority: -5, policy: Block}`)
	for bad, says := range map[string]string{
		`{"stop": "Maybe"}`:           `spec.stop: Unsupported value: "Maybe"`,
		`{"stop": "drain"}`:           `spec.stop: Unsupported value: "drain"`,
		`{"maxPriority": "high"}`:     "spec.maxPriority",
		`{"maxPriority": 1.5}`:        "spec.maxPriority",
		`{"maxPriority": 2147483648}`: "spec.maxPriority",
		`{"policy": "FIFO"}`:          `spec.policy: Unsupported value: "FIFO"`,
	} {
		_, err := s.queues().Patch(t.Context(), rootQueue, types.MergePatchType, []byte(`{"spec": `+bad+`}`), metav1.PatchOptions{})
		if err == nil || !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, want one that says %s", bad, err, says)
		}
	}
}
