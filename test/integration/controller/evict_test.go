package controller

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	schedulingclient "kube-queue.dev/kube-queue/pkg/generated/clientset/versioned/typed/scheduling/v1alpha1"
)

// extensions writes like job-extensions, with its ServiceAccount.
type extensions struct {
	*stage
	units schedulingclient.QueueUnitInterface
}

func (s *stage) extensions() extensions {
	s.Helper()
	config, _, err := cluster.ServiceAccountConfig(s.Context(), "job-extensions")
	must(s.T, err)
	client, err := versioned.NewForConfig(config)
	must(s.T, err)
	return extensions{s, client.SchedulingV1alpha1().QueueUnits(s.namespace)}
}

func (e extensions) get(name string) *schedulingv1alpha1.QueueUnit {
	e.Helper()
	unit, err := e.units.Get(e.Context(), name, metav1.GetOptions{})
	must(e.T, err)
	return unit
}

func (e extensions) activate(name, active string) *schedulingv1alpha1.QueueUnit {
	e.Helper()
	unit, err := e.units.Patch(e.Context(), name, types.MergePatchType, []byte(`{"spec": {"active": `+active+`}}`), metav1.PatchOptions{})
	must(e.T, err)
	return unit
}

// stop reports that the evicted job has stopped.
func (e extensions) stop(name string) {
	e.Helper()
	unit := e.get(name)
	evicted := apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionEvicted)
	if evicted == nil {
		e.Fatalf("%s is not evicted: %+v", name, unit.Status)
	}
	evicted.Reason = string(wellknown.ReasonStopped)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": unit.ResourceVersion},
		"status":   map[string]any{"conditions": unit.Status.Conditions},
	})
	must(e.T, err)
	_, err = e.units.Patch(e.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	must(e.T, err)
}

// nextWrite returns the unit after its next write.
func (e extensions) nextWrite(after *schedulingv1alpha1.QueueUnit) *schedulingv1alpha1.QueueUnit {
	e.Helper()
	timeout := int64(patience.Seconds())
	watching, err := e.units.Watch(e.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + after.Name, ResourceVersion: after.ResourceVersion, TimeoutSeconds: &timeout})
	must(e.T, err)
	defer watching.Stop()
	event := <-watching.ResultChan()
	unit, isUnit := event.Object.(*schedulingv1alpha1.QueueUnit)
	if event.Type != watch.Modified || !isUnit {
		e.Fatalf("unexpected event while waiting for a write of %s: %v %v", after.Name, event.Type, event.Object)
	}
	return unit
}

// expectEvicted checks that one write has evicted the unit, which still holds its quota.
func expectEvicted(t *testing.T, was, now *schedulingv1alpha1.QueueUnit, reason wellknown.Reason, message string) {
	t.Helper()
	evicted := apimeta.FindStatusCondition(now.Status.Conditions, wellknown.ConditionEvicted)
	if evicted == nil || evicted.Status != metav1.ConditionTrue || evicted.Reason != string(reason) || evicted.Message != message || evicted.LastTransitionTime.IsZero() {
		t.Fatalf("condition Evicted is %+v", evicted)
	}
	if now.Status.Reason != reason || now.Status.Message != message {
		t.Errorf("it shows %s: %s", now.Status.Reason, now.Status.Message)
	}
	others := slices.DeleteFunc(slices.Clone(now.Status.Conditions), func(c metav1.Condition) bool { return c.Type == evicted.Type })
	if now.Status.Phase != was.Status.Phase || now.Status.Quota != was.Status.Quota || !slices.Equal(others, was.Status.Conditions) {
		t.Errorf("more has changed: %+v was %+v", now.Status, was.Status)
	}
}

func TestADeactivatedUnitGivesItsQuotaBackOnceItsJobHasStopped(t *testing.T) {
	s := newStage(t)
	e := s.extensions()
	stop := startController(t)
	s.unit("first", `resource: {cpu: 3}`)
	s.becomes("first", "phase", "Dequeued")
	s.unit("second", `resource: {cpu: 3}`)
	s.becomes("second", "reason", "QuotaExceeded")

	was := e.activate("first", "false")
	now := e.nextWrite(was)
	expectEvicted(t, was, now, "Deactivated", "the job was deactivated after its release")
	s.used("3")

	// After a restart no unit is evicted twice, and no quota is freed too early.
	stop()
	stop = startController(t)
	s.used("3")
	if again := e.get("first"); again.ResourceVersion != now.ResourceVersion || s.status("second", "phase") == "Dequeued" {
		t.Fatalf("first is %+v, second %s", again.Status, s.status("second", "phase"))
	}
	stop()
	e.stop("first") // while no controller runs
	startController(t)
	s.becomes("second", "phase", "Dequeued")
	s.becomes("first", "phase", "Enqueued")
	unit := e.get("first")
	if unit.Status.Reason != "Inactive" || unit.Status.Message != "the job was deactivated after its release; spec.active is false; set annotation scheduling.x-k8s.io/active of the job to \"true\" to queue it again" ||
		apimeta.IsStatusConditionTrue(unit.Status.Conditions, wellknown.ConditionEvicted) {
		t.Errorf("it waits with %+v", unit.Status)
	}
	s.used("3")

	e.activate("first", "true")
	s.becomes("first", "reason", "QuotaExceeded")
	s.patch("second", `{"status": {"phase": "Succeeded"}}`, "status")
	s.becomes("first", "phase", "Dequeued")
	if unit := e.get("first"); unit.Status.Attempts != 2 || unit.Status.Reason != "" ||
		apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionEvicted) != nil {
		t.Errorf("released again it is %+v", unit.Status)
	}
}

func TestAUnitWhoseTimeIsOverIsEvicted(t *testing.T) {
	s := newStage(t)
	e := s.extensions()
	stop := startController(t)
	message := "the job exceeded its maximum execution time of 2 s (annotation scheduling.x-k8s.io/max-exec-time-seconds)"
	s.unit("watched", `resource: {cpu: 1}, maximumExecutionTimeSeconds: 2`)
	s.becomes("watched", "phase", "Dequeued")
	was := e.get("watched")
	now := e.nextWrite(was)
	expectEvicted(t, was, now, "MaximumExecutionTime", message)
	evicted := apimeta.FindStatusCondition(now.Status.Conditions, wellknown.ConditionEvicted)
	if ran := evicted.LastTransitionTime.Sub(was.Status.DequeueTime.Truncate(1e9)); ran.Seconds() < 2 || ran.Seconds() > 4 {
		t.Errorf("it was evicted after %v", ran)
	}

	// The run time continues while no controller runs.
	s.unit("unwatched", `resource: {cpu: 1}, maximumExecutionTimeSeconds: 2`)
	s.becomes("unwatched", "phase", "Dequeued")
	was = e.get("unwatched")
	stop()
	s.eventually("its time is over", func() string {
		if left := was.Status.DequeueTime.Add(2e9).Sub(metav1.Now().Time); left > 0 {
			return left.String() + " are left"
		}
		return ""
	})
	startController(t)
	expectEvicted(t, was, e.nextWrite(was), "MaximumExecutionTime", message)
	s.used("2")

	// The creator of the unit ends it.
	s.patch("unwatched", `{"status": {"phase": "Failed"}}`, "status")
	s.used("1")
	if unit := e.get("watched"); unit.ResourceVersion != now.ResourceVersion {
		t.Errorf("the evicted unit was written again: %+v", unit.Status)
	}
}

func TestAUnitThatItsOwnerStopsAgainAndAgainIsAdmittedLater(t *testing.T) {
	s := newStage(t)
	e := s.extensions()
	startController(t)
	s.unit("first", `resource: {cpu: 3}`)
	s.becomes("first", "phase", "Dequeued")
	const free = 3
	for range free + 1 {
		was := e.activate("first", "false")
		e.nextWrite(was)
		e.stop("first")
		s.becomes("first", "reason", "Inactive")
		e.activate("first", "true")
		s.becomes("first", "phase", "Dequeued")
	}
	unit := e.get("first")
	if state := unit.Status.RequeueState; state == nil || state.Count != free+1 || state.RequeueAt == nil ||
		unit.Status.DequeueTime.Before(state.RequeueAt) || !state.RequeueAt.After(unit.CreationTimestamp.Time.Add(10*time.Second)) {
		t.Errorf("it was admitted at %v with the state %+v", unit.Status.DequeueTime, state)
	}
}
