package jobextensions

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// long makes the pods of the job run until the test ends them.
const long = `{spec: {template: {metadata: {annotations: {localcluster.kube-queue.dev/run-time: never}}}}}`

func TestUnsuspendedByHandWhileQueued(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind   kind
		merged string
		patch  string
	}{
		"a Job marked by suspend": {batchJob, `{spec: {suspend: true}}`, `{spec: {suspend: false}}`},
		"a Job, its annotation taken off too": {batchJob, annotated,
			`{metadata: {annotations: {scheduling.x-k8s.io/suspend: "false"}}, spec: {suspend: false}}`},
		"a TFJob, its annotation taken off too": {tfJob, annotated,
			`{metadata: {annotations: {scheduling.x-k8s.io/suspend: null}}, spec: {runPolicy: {suspend: false}}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, cluster, test.kind, test.merged)
			unit := s.enqueued()
			s.change(test.patch)
			s.event(corev1.EventTypeWarning, "HeldAgain", unit.Name)
			s.becomesSuspended(true)
			if again := s.enqueued(); again.UID != unit.UID || again.Status.Phase.HoldsQuota() {
				t.Errorf("the unit is another one, or in phase %s", again.Status.Phase)
			}
			s.admit()
			s.becomesSuspended(false)
		})
	}
}

func TestUnsuspendedByHandWithTheAnnotationIsSuspendedByThePolicy(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, tfJob, annotated)
	s.enqueued()
	s.setSuspend(false)
	if !s.suspended() {
		t.Error("it got through")
	}
}

func TestSuspendedByHandAfterReleaseAndResumed(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{batchJob, tfJob} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			endless := long
			if k.name == "TFJob" {
				endless = `{spec: {tfReplicaSpecs: {Worker: {template: {metadata: {annotations: {localcluster.kube-queue.dev/run-time: never}}}}}}}`
			}
			s := begin(t, cluster, k, annotated, endless)
			s.admit()
			unit := s.inPhase(v1alpha1.PhaseRunning)
			s.setSuspend(true)
			s.evicted(metav1.ConditionTrue, wellknown.ReasonSuspendedByUser)
			// The controller uncharges the quota.
			s.decide(map[string]any{"phase": "Enqueued", "reason": "SuspendedByUser", "message": "it was suspended by hand"})
			s.stays("suspended by hand, it stays in the queue and as it is", func() string {
				if again := s.unit(); again == nil || again.UID != unit.UID || !s.suspended() {
					return "it has left, or runs"
				}
				return ""
			})
			s.setSuspend(false)
			s.evicted(metav1.ConditionFalse, "Resumed")
			s.becomesSuspended(true)
			s.event(corev1.EventTypeNormal, "Requeued", unit.Name)
			s.admit()
			s.becomesSuspended(false)
			if value := s.get().GetAnnotations()["kube-queue/released"]; value != "2" {
				t.Errorf("it was released for attempt %q", value)
			}
			s.inPhase(v1alpha1.PhaseRunning)
		})
	}
}

// A marked job that runs without a unit, for example because the annotation was added later.
func TestAJobThatRunsWhenItIsFirstSeenIsLeftAloneAndReportedOnce(t *testing.T) {
	t.Parallel()
	c := inTurn(t)
	for _, k := range []kind{batchJob, tfJob} {
		s := begin(t, c, k, map[string]string{"Job": long, "TFJob": longTF}[k.name])
		s.eventually("a pod runs", func() string {
			pods, err := s.core.CoreV1().Pods(s.ns).List(s.Context(), metav1.ListOptions{})
			s.must(err)
			if len(pods.Items) != 1 || pods.Items[0].Status.Phase != corev1.PodRunning {
				return fmt.Sprintf("%d pods", len(pods.Items))
			}
			return ""
		})
		if k.name == "TFJob" {
			s.becomes("Running=True")
		} else {
			s.eventually("the status of the job has its pod", func() string {
				if ready, _, _ := unstructured.NestedInt64(s.get().Object, "status", "ready"); ready != 1 {
					return fmt.Sprint(ready, " pods are ready")
				}
				return ""
			})
		}
		s.eventually("it is no new job", func() string { // a new one is suspended late
			if age := time.Since(s.get().GetCreationTimestamp().Time); age <= 11*time.Second {
				return fmt.Sprint("it is ", age, " old")
			}
			return ""
		})
		s.change(annotated)
		for process := range 2 { // the second one knows only the objects
			stop, err := startExtensions(c, "job,tfjob")
			s.must(err)
			s.event(corev1.EventTypeWarning, "NotQueued", "the job ran already when kube-queue first saw its annotation")
			s.change(`{metadata: {labels: {changed: "again"}}}`)
			s.stays("it runs, without a unit, and one event says so", func() string {
				if events := s.events(); s.unit() != nil || s.suspended() || len(events) != 1 {
					return fmt.Sprintf("unit %v, suspended %t, events %v", s.unit(), s.suspended(), events)
				}
				return ""
			})
			stop()
			// The second process may try once to create the event, which exists.
			if got := s.writes(); got.Total()-got.Failed != 1 || got.Failed > process {
				t.Errorf("process %d: %d writes, %d failed: %v", process, got.Total(), got.Failed, got.By)
			}
			s.change(`{metadata: {labels: {changed: while-no-program-runs}}}`)
		}
	}
}

func TestEvictedByTheController(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, long)
	s.admit()
	s.inPhase(v1alpha1.PhaseRunning)
	s.evict("Preempted")
	s.becomesSuspended(true)
	s.evicted(metav1.ConditionTrue, wellknown.ReasonStopped)
	s.event(corev1.EventTypeWarning, "Preempted", "for another")
	if value := s.get().GetAnnotations()[mark]; value != "true" {
		t.Errorf("the mark is %q", value)
	}
	s.decide(map[string]any{"phase": "Enqueued", "reason": "QuotaExceeded", "message": "full"})
	s.event(corev1.EventTypeNormal, "Queued", "full")
	s.admit()
	s.becomesSuspended(false)
}

func TestTheManifestAppliedAgainChangesNothing(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, tfJob, annotated)
	s.admit()
	s.becomesSuspended(false)
	s.change(annotated)
	s.stays("a released job", func() string {
		if s.suspended() || !s.unit().Status.Phase.HoldsQuota() {
			return "it was suspended or has lost its quota"
		}
		return ""
	})
	s.inPhase(v1alpha1.PhaseSucceeded)
	s.change(`{metadata: {annotations: {scheduling.x-k8s.io/suspend: "false"}}}`)
	s.change(annotated)
	s.stays("an ended job", func() string {
		if s.suspended() || s.unit().Status.Phase != v1alpha1.PhaseSucceeded {
			return "it was touched"
		}
		return ""
	})
	s.cost(6)
}

// As Helm 4 and GitOps tools do. A release that changed the mark would make each further apply a conflict.
func TestAJobThatItsOwnerAppliesOnTheServerKeepsItsMark(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{batchJob, tfJob} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, cluster, k, annotated, map[string]string{"Job": long, "TFJob": longTF}[k.name])
			apply := func() {
				t.Helper()
				mark := &unstructured.Unstructured{Object: map[string]any{"apiVersion": s.manifest["apiVersion"], "kind": k.name}}
				mark.SetName("a")
				mark.SetAnnotations(map[string]string{wellknown.SuspendAnnotation: "true"})
				_, err := s.jobs.Apply(s.Context(), "a", mark, metav1.ApplyOptions{FieldManager: "helm"})
				s.must(err)
			}
			marked := func() {
				t.Helper()
				if value := s.get().GetAnnotations()[wellknown.SuspendAnnotation]; value != "true" {
					t.Errorf("its mark is %q", value)
				}
			}
			apply()
			s.enqueued()
			s.admit()
			s.becomesSuspended(false)
			marked()
			apply()
			s.inPhase(v1alpha1.PhaseRunning)

			s.setSuspend(true)
			s.evicted(metav1.ConditionTrue, wellknown.ReasonSuspendedByUser)
			s.decide(map[string]any{"phase": "Enqueued", "reason": "SuspendedByUser", "message": "it was suspended by hand"})
			apply()
			s.stays("suspended by hand, it stays as it is", func() string {
				if !s.suspended() || s.unit().Status.Reason != wellknown.ReasonSuspendedByUser {
					return "it is queued, or runs"
				}
				return ""
			})
			s.setSuspend(false)
			s.evicted(metav1.ConditionFalse, "Resumed")
			s.becomesSuspended(true)
			s.admit()
			s.becomesSuspended(false)
			if job := s.get().GetAnnotations(); job[wellknown.ReleasedAnnotation] != "2" || job[wellknown.ResumedAnnotation] != "" {
				t.Errorf("its annotations are %v", job)
			}
			s.inPhase(v1alpha1.PhaseRunning)

			s.evict(wellknown.ReasonPreempted)
			s.becomesSuspended(true)
			s.evicted(metav1.ConditionTrue, wellknown.ReasonStopped)
			apply()
			marked()
			s.stays("evicted, it waits", func() string {
				if !s.suspended() {
					return "it runs"
				}
				return ""
			})
		})
	}
}

func TestAJobWithoutItsMarkLeavesTheQueue(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, tfJob, annotated)
	s.enqueued()
	s.becomes("Suspended=True")
	s.refuse("QuotaExceeded", "full")
	s.becomes("Queuing=True")
	s.change(`{metadata: {annotations: {scheduling.x-k8s.io/suspend: null}}}`)
	s.eventually("the unit is gone", func() string {
		if s.unit() != nil {
			return "it is there"
		}
		return ""
	})
	s.event(corev1.EventTypeNormal, "LeftQueue", "")
	s.becomes("Queuing=False")
	s.stays("it stays out and suspended", func() string {
		if s.unit() != nil || !s.suspended() {
			return "it came back, or runs"
		}
		return ""
	})
	// And marked again.
	s.change(annotated)
	s.enqueued()
}

func TestAUnitDeletedByHandIsCreatedAgain(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated)
	first := s.enqueued()
	s.must(s.units.SchedulingV1alpha1().QueueUnits(s.ns).Delete(t.Context(), first.Name, metav1.DeleteOptions{}))
	second := s.hasUnit("another", func(u *v1alpha1.QueueUnit) bool { return u.UID != first.UID })
	if second.Name != first.Name || !second.Spec.SubmissionTime.Time.Before(first.Spec.SubmissionTime.Add(1e9)) {
		t.Errorf("%s submitted %v became %s submitted %v", first.Name, first.Spec.SubmissionTime, second.Name, second.Spec.SubmissionTime)
	}
}

func TestADeletedJobTakesItsUnitWithIt(t *testing.T) {
	t.Parallel()
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			s := begin(t, cluster, batchJob, annotated)
			s.enqueued()
			s.must(s.jobs.Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: &policy}))
			s.eventually("the unit is gone", func() string {
				if s.unit() != nil {
					return "it is there"
				}
				return ""
			})
		})
	}
}

func TestAJobMadeAgainUnderItsNameHasAUnitOfItsOwn(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated)
	first := s.enqueued()
	s.must(s.jobs.Delete(t.Context(), "a", deleteOrphaning()))
	s.eventually("the job is gone", func() string {
		if _, err := s.jobs.Get(t.Context(), "a", metav1.GetOptions{}); err == nil {
			return "it is there"
		}
		return ""
	})
	s.create()
	second := s.enqueued()
	if second.Name == first.Name {
		t.Errorf("both units are %s", first.Name)
	}
	s.eventually("the first unit is gone", func() string {
		if _, err := s.units.SchedulingV1alpha1().QueueUnits(s.ns).Get(t.Context(), first.Name, metav1.GetOptions{}); err == nil {
			return "it is there"
		}
		return ""
	})
}

func TestACopyOfAReleasedJobIsHeld(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, `{metadata: {annotations: {kube-queue/released: "1"}}}`)
	s.enqueued()
	s.admit()
	s.becomesSuspended(false)
	s.inPhase(v1alpha1.PhaseRunning)
}

func TestJobsOfOthersAreNotTouched(t *testing.T) {
	t.Parallel()
	// An event may show its owner what holds the job; nothing else is written.
	const unheld, ofKueue, ofAnother = "", "KueueNotInstalled", "NotQueued"
	tests := map[string][2]string{
		"a job of another queue":             {`{metadata: {labels: {kueue.x-k8s.io/queue-name: q}}, spec: {suspend: true}}`, ofKueue},
		"a job that another controller runs": {`{spec: {suspend: true, managedBy: example.com/other}}`, ofAnother},
		"a job that requests nothing":        {`{spec: {suspend: false}}`, unheld},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, cluster, batchJob, test[0])
			events := 0
			if reason := test[1]; reason != unheld {
				events = 1
				s.event(corev1.EventTypeWarning, reason, "")
			}
			s.stays("no unit, no write", func() string {
				if s.unit() != nil {
					return "there is a unit"
				}
				return ""
			})
			if got := s.writes(); got.Total()+got.Failed != events {
				t.Errorf("it was written to: %v", got.By)
			}
		})
	}
}

func TestAUnitMadeByHandIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob)
	own := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: v1alpha1.QueueUnitSpec{
		ConsumerRef: v1alpha1.ConsumerReference{APIVersion: "example.com/v1", Kind: "Thing", Name: "thing", UID: "1"},
	}}
	created, err := s.units.SchedulingV1alpha1().QueueUnits(s.ns).Create(t.Context(), own, metav1.CreateOptions{})
	s.must(err)
	s.stays("it is there and as it was", func() string {
		now, err := s.units.SchedulingV1alpha1().QueueUnits(s.ns).Get(t.Context(), "own", metav1.GetOptions{})
		if err != nil || now.ResourceVersion != created.ResourceVersion {
			return "it was touched"
		}
		return ""
	})
}

func deleteOrphaning() metav1.DeleteOptions {
	policy := metav1.DeletePropagationOrphan
	return metav1.DeleteOptions{PropagationPolicy: &policy}
}
