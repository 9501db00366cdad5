package jobextensions

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)

// The unit of a job that was deleted without its pods stays until they are gone. It does not stop a new job with the
// same name.
func TestAJobMadeAgainIsQueuedWhilePodsOfTheFirstAreLeft(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, long)
	s.admit()
	s.inPhase(v1alpha1.PhaseRunning)
	first, pod := *s, s.onlyPod()
	s.orphan()
	s.create()
	s.admit()
	s.inPhase(v1alpha1.PhaseRunning)
	left := first.hasUnit("that says what is left", func(u *v1alpha1.QueueUnit) bool { return u.Status.Reason == wellknown.ReasonPodsRemain })
	if left.Status.Phase != v1alpha1.PhaseRunning || !strings.Contains(left.Status.Message, "Pod "+pod) || len(left.OwnerReferences) > 0 {
		t.Errorf("the unit is %s %s", asJSON(left.ObjectMeta), asJSON(left.Status))
	}
	s.removePod(pod)
	first.hasNoUnit()
	if unit := s.unit(); unit == nil || unit.Status.Phase != v1alpha1.PhaseRunning || unit.Status.Reason != "" {
		t.Errorf("the unit of the second job is %v", unit)
	}
}

// orphan deletes the job and keeps its dependents.
func (s *story) orphan() {
	s.Helper()
	s.collectorKnowsUnits()
	s.must(s.jobs.Delete(s.Context(), "a", deleteOrphaning()))
	s.eventually("the job is gone", func() string {
		if _, err := s.jobs.Get(s.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("reading it: %v", err)
		}
		return ""
	})
}

// collectorKnowsUnits waits until the garbage collector has seen the existing units. If it saw them later, it would
// delete those whose jobs are gone. It sees units in the order of their creation.
func (s *story) collectorKnowsUnits() {
	s.Helper()
	units := s.units.SchedulingV1alpha1().QueueUnits(s.ns)
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "of-no-configmap"}
	last, err := units.Create(s.Context(), &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "last-", OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: v1alpha1.QueueUnitSpec{ConsumerRef: v1alpha1.ConsumerReference{
			APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: s.ns, Name: owner.Name, UID: owner.UID}},
	}, metav1.CreateOptions{})
	s.must(err)
	s.eventually("a unit without an owner is deleted", func() string {
		if _, err := units.Get(s.Context(), last.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("reading it: %v", err)
		}
		return ""
	})
}

// onlyPod returns the name of the only pod.
func (s *story) onlyPod() string {
	s.Helper()
	pods, err := s.core.CoreV1().Pods(s.ns).List(s.Context(), metav1.ListOptions{})
	s.must(err)
	if len(pods.Items) != 1 {
		s.Fatalf("there are %d pods", len(pods.Items))
	}
	return pods.Items[0].Name
}

// removePod deletes a pod at once.
func (s *story) removePod(name string) {
	s.Helper()
	s.must(s.core.CoreV1().Pods(s.ns).Delete(s.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
}

func (s *story) hasNoUnit() {
	s.Helper()
	s.eventually("it has no unit", func() string {
		if unit := s.unit(); unit != nil {
			return asJSON(unit.Status)
		}
		return ""
	})
}
