package jobextensions

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// long makes the pods of the job run until the test ends them.
const long = `{spec: {template: {metadata: {annotations: {localcluster.kube-queue.dev/run-time: never}}}}}`

// A tenant unsuspends a queued job in a loop. Each time, it is suspended again, which cannot wait. Its unit is not
// written at all, and its events become less and less frequent.
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
			before := s.writes()
			const times = 12
			for range times {
				s.change(test.patch)
				s.becomesSuspended(true)
				// If a TFJob resumes while its last pod is being deleted, its operator may take that as a failure.
				s.eventually("its pods are gone", func() string {
					pods, err := s.core.CoreV1().Pods(s.ns).List(s.Context(), metav1.ListOptions{})
					s.must(err)
					if n := len(pods.Items); n > 0 {
						return fmt.Sprintf("there are %d", n)
					}
					return ""
				})
			}
			s.eventually("one event counts all", func() string {
				var found []corev1.Event
				for _, e := range s.events() {
					if e.Reason == "HeldAgain" {
						found = append(found, e)
					}
				}
				if len(found) == 1 && found[0].Count == times && found[0].Type == corev1.EventTypeWarning && strings.Contains(found[0].Message, unit.Name) {
					return ""
				}
				return fmt.Sprintf("%d events: %+v", len(found), found)
			})
			after := s.writes()
			// There are three events at once, one that counts the others, and up to three more on a slow machine:
			// after 10, 20 and 40 s.
			if events := after.OnEvents - before.OnEvents; events > 7 {
				t.Errorf("%d times cost %d writes of events", times, events)
			}
			if after.OnUnit != before.OnUnit {
				t.Errorf("the unit was written %d times", after.OnUnit-before.OnUnit)
			}
			if again := s.enqueued(); again.UID != unit.UID || again.Status.Phase.HoldsQuota() {
				t.Errorf("the unit is another one, or in phase %s", again.Status.Phase)
			}
			s.admit()
			s.becomesSuspended(false)
		})
	}
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

// Helm 4 and GitOps tools do this. A release that changed the mark would make each later apply a conflict.
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
			unit := s.enqueued()
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
			s.event(corev1.EventTypeNormal, "Requeued", unit.Name)
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
	s.change(`{metadata: {annotations: {scheduling.x-k8s.io/suspend: null}}}`)
	s.hasNoUnit()
	s.event(corev1.EventTypeNormal, "LeftQueue", "")
	s.stays("it stays out and suspended", func() string {
		if s.unit() != nil || !s.suspended() {
			return "it came back, or runs"
		}
		return ""
	})
	// Mark it again.
	s.change(annotated)
	s.enqueued()
}

// A finalizer keeps the job.
func TestAJobBeingDeletedLeavesTheQueue(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, `{metadata: {finalizers: [example.com/keep]}}`)
	s.enqueued()
	s.must(s.jobs.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	if s.get().GetDeletionTimestamp() == nil {
		t.Fatal("the job is not being deleted")
	}
	s.hasNoUnit()
	s.stays("it has no unit and is suspended", func() string {
		if s.unit() != nil || !s.suspended() {
			return "it has a unit, or runs"
		}
		return ""
	})
	s.change(`{metadata: {finalizers: null}}`)
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
