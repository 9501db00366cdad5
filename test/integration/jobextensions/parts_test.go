package jobextensions

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

func TestAMarkedJobOfAnyControllerIsQueued(t *testing.T) {
	t.Parallel()
	for name, mark := range map[string]string{
		"marked by the annotation": annotated,
		"marked by its suspend":    `{spec: {suspend: true}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The API group is not served, so the garbage collector does not look for the owner.
			s := begin(t, cluster, batchJob, mark, `{metadata: {ownerReferences: [{apiVersion: keda.sh/v1alpha1, kind: ScaledJob, name: none, uid: "1", controller: true}]}}`)
			s.enqueued()
			s.becomesSuspended(true)
			s.admit()
			s.becomesSuspended(false)
			s.inPhase(v1alpha1.PhaseRunning)
		})
	}
}

// The owner has a version of ray.io that is not served: the garbage collector cannot look for the owner, and
// job-extensions finds none.
func TestAMarkedJobThatNamesAJobThatDoesNotExistIsQueued(t *testing.T) {
	t.Parallel()
	s := begin(t, cluster, batchJob, annotated, long, `{metadata: {ownerReferences: [{apiVersion: ray.io/v9, kind: RayCluster, name: none, uid: "1", controller: true}]}}`)
	s.becomesSuspended(true)
	s.enqueued()
	s.event(corev1.EventTypeWarning, "HeldLate", "the job names RayCluster none as its controller, which does not exist")
}

// A mark that is set after the creation has the same effect whether or not the job has started.
func TestANewJobThatIsMarkedLateIsSuspendedAndQueued(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{batchJob, tfJob} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, cluster, k, map[string]string{"Job": long, "TFJob": longTF}[k.name])
			s.change(annotated)
			s.becomesSuspended(true)
			s.enqueued()
			s.event(corev1.EventTypeWarning, "HeldLate", "was added after the job was created")
			s.eventually("no pod is left", func() string {
				pods, err := s.core.CoreV1().Pods(s.ns).List(s.Context(), metav1.ListOptions{})
				s.must(err)
				if len(pods.Items) > 0 {
					return fmt.Sprint(len(pods.Items), " pods")
				}
				return ""
			})
			s.admit()
			s.inPhase(v1alpha1.PhaseRunning)
		})
	}
}
