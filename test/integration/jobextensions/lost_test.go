package jobextensions

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/test/harness"
)

// Without its unit, replacements of a running job's pods would not be charged.
func TestALostUnitOfAReleasedJobIsCreatedAgain(t *testing.T) {
	t.Parallel()
	config, err := account(cluster, "job-extensions") // the policy lets no other user delete it
	harness.Must(t, err)
	client, err := clientset.NewForConfig(config)
	harness.Must(t, err)
	for _, k := range []kind{batchJob, tfJob} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, cluster, k, annotated, map[string]string{"Job": long, "TFJob": longTF}[k.name])
			s.admit()
			first := s.inPhase(v1alpha1.PhaseRunning)
			s.must(client.SchedulingV1alpha1().QueueUnits(s.ns).Delete(t.Context(), first.Name, metav1.DeleteOptions{}))
			second := s.hasUnit("another", func(u *v1alpha1.QueueUnit) bool { return u.UID != first.UID })
			if second.Name != first.Name || second.Annotations["kube-queue/released"] != "1" || second.Spec.Resource.Cpu().Cmp(*first.Spec.Resource.Cpu()) != 0 {
				t.Errorf("%+v became %+v", first, second)
			}
			s.event(corev1.EventTypeWarning, "UnitRestored", second.Name)
			s.stays("the job runs until the controller has charged the unit", func() string {
				if u := s.unit(); s.suspended() || u.UID != second.UID || u.Status.Phase.HoldsQuota() {
					return fmt.Sprintf("suspended %t, unit %+v", s.suspended(), u)
				}
				return ""
			})
			s.decide(map[string]any{"phase": "Dequeued", "attempts": 1, "dequeueTime": metav1.NowMicro(), "quota": "root/team", "queue": "root-team"})
			s.inPhase(v1alpha1.PhaseRunning)
			if s.suspended() || s.get().GetAnnotations()["kube-queue/released"] != "1" {
				t.Errorf("the job was touched: %v", s.get().GetAnnotations())
			}
			// From then on, it is a unit like any other.
			s.evict("Preempted")
			s.becomesSuspended(true)
		})
	}
}
