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
