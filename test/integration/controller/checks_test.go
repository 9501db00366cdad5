package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

func (s *stage) checks() dynamic.ResourceInterface {
	return s.objects.Resource(schedulingv1alpha1.SchemeGroupVersion.WithResource("admissionchecks"))
}

// check creates an AdmissionCheck, which is deleted with the stage.
func (s *stage) check(name, spec string) {
	s.Helper()
	s.create(s.checks(), `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: AdmissionCheck, metadata: {name: `+name+`}, spec: `+spec+`}`)
	s.Cleanup(func() {
		must(s.T, s.objects.Resource(schedulingv1alpha1.SchemeGroupVersion.WithResource("admissionchecks")).
			Delete(context.Background(), name, metav1.DeleteOptions{}))
	})
}

// decide writes the state of the only check of a unit.
func (s *stage) decide(unit, check, state, message string) {
	s.Helper()
	s.patch(unit, fmt.Sprintf(`{"status": {"admissionChecks": [{"name": %q, "state": %q, "message": %q}]}}`, check, state, message), "status")
}

func TestAUnitIsReservedUntilItsChecksAreReady(t *testing.T) {
	s := newStage(t)
	s.check("nodes", `{controllerName: example.com/nodes}`)
	s.setQueue(`{"admissionChecks": ["nodes"]}`)
	stop := startController(t)
	s.unit("first", `resource: {cpu: 3}`)
	s.becomes("first", "phase", "Reserved")
	s.becomes("first", "reason", "AdmissionCheckPending")
	s.says("first", "the quota is reserved; the job is released when these admission checks are ready, each decided by the controller that its AdmissionCheck names: nodes")
	s.unit("second", `resource: {cpu: 3}`)
	s.becomes("second", "reason", "QuotaExceeded")
	s.used("3")
	s.queueShows("reserved", "1")
	unit := s.extensions().get("first")
	if checks := unit.Status.AdmissionChecks; len(checks) != 1 || checks[0].Name != "nodes" || checks[0].State != schedulingv1alpha1.CheckPending || checks[0].LastTransitionTime.IsZero() || unit.Status.Reservations != 1 || unit.Status.Attempts != 0 {
		t.Errorf("the status is %+v", unit.Status)
	}

	s.decide("first", "nodes", "Pending", "2 of 3 nodes are there")
	s.becomes("first", "message", "admission check nodes is not decided: 2 of 3 nodes are there")

	// The next process knows all of this from the API objects.
	stop()
	s.decide("first", "nodes", "Ready", "")
	startController(t)
	s.becomes("first", "phase", "Dequeued")
	if attempts := s.extensions().get("first").Status.Attempts; attempts != 1 {
		t.Errorf("%d attempts", attempts)
	}
	s.used("3")
	if checks := s.extensions().get("first").Status.AdmissionChecks; len(checks) != 1 || checks[0].State != schedulingv1alpha1.CheckReady {
		t.Errorf("the checks are %+v", checks)
	}
}

func TestACheckThatFailsFreesTheQuota(t *testing.T) {
	s := newStage(t)
	s.check("nodes", `{controllerName: example.com/nodes}`)
	s.setQueue(`{"admissionChecks": ["nodes"]}`)
	stop := startController(t)
	s.unit("first", `resource: {cpu: 3}`)
	s.becomes("first", "phase", "Reserved")
	s.unit("second", `resource: {cpu: 3}`)
	s.becomes("second", "reason", "QuotaExceeded")
	s.decide("first", "nodes", "Retry", "there is no capacity")
	s.becomes("first", "phase", "Backoff")
	if says := s.status("first", "message"); !strings.HasPrefix(says, "admission check nodes failed: there is no capacity; the job is queued again at ") {
		t.Errorf("it says %q", says)
	}
	s.becomes("second", "phase", "Reserved")
	s.decide("second", "nodes", "Rejected", "this image is not allowed")
	s.becomes("second", "reason", "AdmissionCheckRejected")
	s.says("second", "admission check nodes rejected the job: this image is not allowed; it is queued again when it changes")

	// After a restart too, the one waits for its time and the other for a change.
	stop()
	startController(t)
	s.becomes("first", "phase", "Reserved")
	if reservations := s.extensions().get("first").Status.Reservations; reservations != 2 {
		t.Errorf("%d reservations", reservations)
	}
	second := s.extensions().get("second")
	if second.Status.Phase != schedulingv1alpha1.PhaseEnqueued || second.Status.Reason != "AdmissionCheckRejected" {
		t.Errorf("the status is %+v", second.Status)
	}
	s.decide("first", "nodes", "Ready", "")
	s.becomes("first", "phase", "Dequeued")
	_, err := s.extensions().units.Patch(t.Context(), "second", types.MergePatchType, []byte(`{"spec": {"resource": {"cpu": "1"}}}`), metav1.PatchOptions{})
	must(t, err)
	s.becomes("second", "phase", "Reserved")
	if now := s.extensions().get("second"); len(now.Status.Conditions) != 0 {
		t.Errorf("the conditions are %+v", now.Status.Conditions)
	}
	s.used("4")
}

func TestAQueueWithAMissingCheckReportsIt(t *testing.T) {
	s := newStage(t)
	s.setQueue(`{"admissionChecks": ["nodes"]}`)
	startController(t)
	s.unit("first", `resource: {cpu: 3}`)
	s.becomes("first", "reason", "AdmissionCheckMissing")
	s.queueShows("headReason", "AdmissionCheckMissing")
	s.check("nodes", `{controllerName: example.com/nodes, timeout: 3s}`)
	s.becomes("first", "phase", "Reserved")
	s.becomes("first", "phase", "Backoff") // nobody answers
	_, err := s.checks().Patch(t.Context(), "nodes", types.MergePatchType, []byte(`{"spec": {"timeout": null}}`), metav1.PatchOptions{})
	must(t, err)
	s.becomes("first", "phase", "Reserved")
	s.setQueue(`{"stop": "Drain"}`)
	s.becomes("first", "reason", "QueueStopped")
	s.setQueue(`{"stop": "None"}`)
	s.becomes("first", "phase", "Reserved")
	s.setQueue(`{"stop": "Hold"}`)
	s.becomes("first", "phase", "Enqueued")
	s.used("<nil>")
	s.setQueue(`{"stop": "None", "admissionChecks": null}`)
	s.becomes("first", "phase", "Dequeued")
}
