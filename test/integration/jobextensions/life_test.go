package jobextensions

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

const annotated = `{metadata: {annotations: {scheduling.x-k8s.io/suspend: "true"}}}`

// short makes the pods of the job end almost immediately.
const short = `{spec: {template: {metadata: {annotations: {localcluster.kube-queue.dev/run-time: 200ms}}}}}`

func TestAJobThatDoesNotWaitAndEndsSoonCostsFiveWrites(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, `{spec: {suspend: true}}`, short)
	unit := s.enqueued()
	if cpu := unit.Spec.Resource[corev1.ResourceCPU]; cpu.Cmp(resource.MustParse("1")) != 0 || unit.Spec.SubmissionTime == nil {
		t.Errorf("the unit requests %v, submitted at %v", unit.Spec.Resource, unit.Spec.SubmissionTime)
	}
	s.admit()
	s.becomesSuspended(false)
	unit = s.inPhase(v1alpha1.PhaseSucceeded)
	finished := apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionFinished)
	if finished == nil || finished.Reason != "CompletionsReached" || len(unit.Status.Conditions) != 1 {
		t.Errorf("conditions are %v", unit.Status.Conditions)
	}
	if annotations := s.get().GetAnnotations(); annotations[mark] != "" || annotations["kube-queue/released"] != "1" {
		t.Errorf("annotations are %v", annotations)
	}
	s.event(corev1.EventTypeNormal, "Released", unit.Name)
	s.cost(5)
}

func TestAJobThatRunsLongCostsSixWrites(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated)
	if !s.suspended() {
		t.Fatal("the hold policy did not hold it")
	}
	s.admit()
	s.inPhase(v1alpha1.PhaseRunning)
	if value := s.get().GetAnnotations()[mark]; value != "false" {
		t.Errorf("the mark is %q", value)
	}
	s.inPhase(v1alpha1.PhaseSucceeded)
	s.event(corev1.EventTypeNormal, "Released", "")
	s.cost(6)
}

func TestThatAllPodsAreReadyCostsNoWriteOfItsOwnIfTheJobBeginsToRunWithThem(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated)
	s.admitAwaitingPods()
	unit := s.inPhase(v1alpha1.PhaseRunning)
	ready := apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionPodsReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.Reason != string(wellknown.ReasonPodsReady) {
		t.Errorf("conditions are %v", unit.Status.Conditions)
	}
	s.inPhase(v1alpha1.PhaseSucceeded)
	s.event(corev1.EventTypeNormal, "Released", "")
	s.cost(6)
}

func TestAUnitReleasedByAnOlderReleaseLosesTheConditionsThatRepeatItsPhase(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated)
	s.admitWith("QuotaReserved", "Admitted", wellknown.ConditionPodsReady)
	unit := s.inPhase(v1alpha1.PhaseRunning)
	if c := unit.Status.Conditions; len(c) != 1 || c[0].Type != wellknown.ConditionPodsReady {
		t.Errorf("conditions are %v", c)
	}
	s.inPhase(v1alpha1.PhaseSucceeded)
	s.event(corev1.EventTypeNormal, "Released", "")
	s.cost(6)
}

func TestAJobThatWaitsCostsEightWritesAndSaysWhy(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated)
	unit := s.enqueued()
	s.refuse("QuotaExceeded", "team has 0 of 1 cpu left")
	s.event(corev1.EventTypeNormal, "Queued", "QueueUnit "+unit.Name+" is waiting: QuotaExceeded: team has 0 of 1 cpu left")
	s.admit()
	s.inPhase(v1alpha1.PhaseRunning)
	s.inPhase(v1alpha1.PhaseSucceeded)
	s.event(corev1.EventTypeNormal, "Released", "")
	s.cost(8)
}

func TestATFJobThatWaitsShowsQueuingAndCostsTenWrites(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, tfJob, annotated)
	unit := s.enqueued()
	s.becomes("Suspended=True")
	s.refuse("QuotaExceeded", "team has 0 of 1 cpu left")
	s.eventually("it shows Queuing", func() string {
		if last := s.lastState(); last != "Queuing=True" {
			return last
		}
		return ""
	})
	out, err := cluster.Kubectl(t.Context(), "get", "tfjob", "-n", s.ns, "a")
	if err != nil || !strings.Contains(out, "Queuing") {
		t.Errorf("kubectl shows %s, error %v", out, err)
	}
	s.event(corev1.EventTypeNormal, "Queued", unit.Name)
	out, err = cluster.Kubectl(t.Context(), "describe", "tfjob", "-n", s.ns, "a")
	if err != nil || !strings.Contains(out, "team has 0 of 1 cpu left") {
		t.Errorf("kubectl describe shows %s, error %v", out, err)
	}
	s.admit()
	s.becomes("Running=True")
	if states := s.states(); !slices.Contains(states, "Queuing=False") {
		t.Errorf("conditions are %v", states)
	}
	s.inPhase(v1alpha1.PhaseRunning)
	s.inPhase(v1alpha1.PhaseSucceeded)
	s.event(corev1.EventTypeNormal, "Released", "")
	s.cost(10)
}

func TestATFJobThatDoesNotWaitNeverShowsQueuing(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, tfJob, annotated,
		`{spec: {tfReplicaSpecs: {Worker: {template: {metadata: {annotations: {localcluster.kube-queue.dev/run-time: 200ms}}}}}}}`)
	s.admit()
	s.inPhase(v1alpha1.PhaseSucceeded)
	if states := s.states(); slices.Contains(states, "Queuing=False") {
		t.Errorf("conditions are %v", states)
	}
	s.event(corev1.EventTypeNormal, "Released", "")
	s.cost(5)
}

func TestAFailedJobFailsItsUnit(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, short,
		`{spec: {backoffLimit: 0, template: {metadata: {annotations: {localcluster.kube-queue.dev/exit-code: "3"}}}}}`)
	s.admit()
	unit := s.inPhase(v1alpha1.PhaseFailed)
	if c := apimeta.FindStatusCondition(unit.Status.Conditions, wellknown.ConditionFinished); c == nil || c.Reason != "BackoffLimitExceeded" {
		t.Errorf("conditions are %v", unit.Status.Conditions)
	}
}

func TestBuriedQueuingIsPutLastAgain(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, tfJob, annotated)
	s.enqueued()
	s.becomes("Suspended=True")
	s.refuse("QuotaExceeded", "full")
	shows := func() string {
		if last := s.lastState(); last != "Queuing=True" {
			return last
		}
		return ""
	}
	s.eventually("it shows Queuing", shows)
	job := s.get()
	conditions := job.Object["status"].(map[string]any)["conditions"].([]any)
	job.Object["status"].(map[string]any)["conditions"] = append(conditions, map[string]any{"type": "Created", "status": "True"})
	_, err := s.jobs.UpdateStatus(t.Context(), job, metav1.UpdateOptions{})
	s.must(err)
	s.eventually("it shows Queuing again", shows)
	if states := s.states(); !slices.Contains(states, "Created=True") {
		t.Errorf("another's condition was lost: %v", states)
	}
}
