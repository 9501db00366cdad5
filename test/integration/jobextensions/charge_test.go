package jobextensions

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

func (s *story) requests(cpu string) func(*v1alpha1.QueueUnit) bool {
	return func(u *v1alpha1.QueueUnit) bool {
		quantity := u.Spec.Resource["cpu"]
		return quantity.String() == cpu
	}
}

// What a released job no longer requests is returned. Additional requests are not admitted: their pods are charged.
func TestTheUnitOfAReleasedJobFollowsItDownwardsOnly(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, long, `{spec: {parallelism: 4}}`)
	s.hasUnit("of 4 cpu", s.requests("4"))
	s.admit()
	s.inPhase(v1alpha1.PhaseRunning)
	before := s.writes().Total()
	s.change(`{spec: {parallelism: 1}}`)
	unit := s.hasUnit("of 1 cpu", s.requests("1"))
	if sets := unit.Spec.PodSets; len(sets) != 1 || sets[0].Count != 1 || unit.Status.Phase != v1alpha1.PhaseRunning {
		t.Errorf("pod sets are %+v in phase %s", sets, unit.Status.Phase)
	}
	s.change(`{spec: {parallelism: 8}}`)
	s.eventually("8 pods", func() string {
		if active, _, _ := unstructured.NestedInt64(s.get().Object, "status", "active"); active != 8 {
			return fmt.Sprint(active)
		}
		return ""
	})
	s.stays("the unit requests 1 cpu", func() string {
		if unit := s.unit(); !s.requests("1")(unit) || unit.Spec.PodSets[0].Count != 1 {
			return asJSON(unit.Spec)
		}
		return ""
	})
	if wrote := s.writes().Total() - before; wrote != 1 {
		t.Errorf("it cost %d writes, not 1", wrote)
	}
}

func TestTheOwnerOfAJobThatRequestsNothingIsWarnedOnce(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, short, `{spec: {template: {spec: {containers: [{name: main, image: main}]}}}}`)
	s.hasUnit("of no resources", func(u *v1alpha1.QueueUnit) bool { return len(u.Spec.Resource) == 0 && *u.Spec.Active })
	s.event(corev1.EventTypeWarning, "NoRequests", "set resources.requests")
	s.admit()
	s.inPhase(v1alpha1.PhaseSucceeded)
	s.event(corev1.EventTypeNormal, "Released", "")
	s.cost(6)
}

func TestTheOwnerOfAQueuedJobThatNoLongerRequestsAnythingIsWarned(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, tfJob, annotated)
	s.hasUnit("of 1 cpu", s.requests("1"))
	s.change(`{spec: {tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: tensorflow, image: main}]}}}}}}`)
	s.event(corev1.EventTypeWarning, "NoRequests", "")
}
