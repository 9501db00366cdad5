package jobextensions

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

// saysInvalid waits for a unit with reason InvalidRequest and this message.
func (s *story) saysInvalid(message string) {
	s.Helper()
	s.hasUnit("says "+message, func(u *v1alpha1.QueueUnit) bool {
		return !*u.Spec.Active && u.Status.Reason == "InvalidRequest" && u.Status.Message == message
	})
	s.event(corev1.EventTypeWarning, "Queued", message)
}

func TestInvalidRequestsAreNeverAdmittedAndCanBeFixed(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, `{metadata: {annotations: {scheduling.x-k8s.io/priority: urgent}}}`)
	s.saysInvalid(`annotation scheduling.x-k8s.io/priority must be an integer from -2147483648 to 2147483647, not "urgent"`)
	s.change(`{metadata: {annotations: {scheduling.x-k8s.io/priority: "9"}}}`)
	s.hasUnit("fixed", func(u *v1alpha1.QueueUnit) bool {
		return *u.Spec.Active && u.Spec.Priority == 9 && len(u.Spec.PodSets) == 1
	})
	s.change(`{metadata: {annotations: {scheduling.x-k8s.io/max-exec-time-seconds: soon}}}`)
	s.saysInvalid(`annotation scheduling.x-k8s.io/max-exec-time-seconds must be an integer from 1 to 2147483647 (seconds), not "soon"`)
	s.change(`{metadata: {annotations: {scheduling.x-k8s.io/max-exec-time-seconds: "60"}}}`)
	s.hasUnit("fixed again", func(u *v1alpha1.QueueUnit) bool {
		return *u.Spec.Active && u.Spec.MaximumExecutionTimeSeconds != nil
	})
	s.admit()
	s.becomesSuspended(false)
}

func TestAMissingPriorityClassIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, `{metadata: {labels: {scheduling.x-k8s.io/priority-class: comes-later}}}`)
	s.saysInvalid(`PriorityClass "comes-later", which is named by label scheduling.x-k8s.io/priority-class, does not exist; name an existing PriorityClass there, or ask an administrator to create it`)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "comes-later"}, Value: 42}
	_, err := s.core.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{})
	s.must(err)
	s.hasUnit("of its priority", func(u *v1alpha1.QueueUnit) bool {
		return *u.Spec.Active && u.Spec.Priority == 42 && u.Spec.PriorityClassName == "comes-later"
	})
}

func TestRequestsThatCannotBeCounted(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, tfJob, annotated, `{spec: {tfReplicaSpecs: {Worker: {replicas: 1000, template: {spec: {containers: [
		{name: tensorflow, image: main, resources: {requests: {memory: 1E}}}]}}}}}}`)
	s.saysInvalid(`pod set "worker" (1000 pods): the amount of memory exceeds the maximum of 9223372036854775807; request less`)
	s.change(`{spec: {tfReplicaSpecs: {Worker: {replicas: -1}}}}`)
	s.hasUnit("says so", func(u *v1alpha1.QueueUnit) bool {
		return u.Status.Message == `the number of pods of pod set "worker" must be 0 or more, not -1`
	})
}

func TestAChangeWhileQueuedCounts(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, tfJob, annotated)
	unit := s.enqueued()
	s.change(`{metadata: {annotations: {scheduling.x-k8s.io/active: "false"}, labels: {kube-queue/quota-name: other, kube-queue/preemptible: "false"}},
		spec: {tfReplicaSpecs: {Worker: {replicas: 3}}}}`)
	changed := s.hasUnit("in step", func(u *v1alpha1.QueueUnit) bool {
		cpu := u.Spec.Resource[corev1.ResourceCPU]
		return cpu.Value() == 3 && u.Spec.PodSets[0].Count == 3 && !*u.Spec.Active && !*u.Spec.Preemptible && u.Spec.QuotaName == "other"
	})
	if changed.UID != unit.UID || !changed.Spec.SubmissionTime.Equal(unit.Spec.SubmissionTime) {
		t.Errorf("it has lost its place")
	}
	s.change(`{metadata: {annotations: {scheduling.x-k8s.io/active: null}, labels: {kube-queue/quota-name: null}}}`)
	s.hasUnit("in step again", func(u *v1alpha1.QueueUnit) bool { return *u.Spec.Active && u.Spec.QuotaName == "" })
}
