package reconciler

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/job"
)

// One patch releases a job with fewer pods, and one suspends it with all of them.
func TestThePatchesOfAJobSetItsNumberOfPods(t *testing.T) {
	held := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "u", ResourceVersion: "7", Annotations: map[string]string{"scheduling.x-k8s.io/suspend": "true"}},
		Spec:       batchv1.JobSpec{Parallelism: ptr.To[int32](10), Suspend: ptr.To(true)},
	}
	unit := &v1alpha1.QueueUnit{
		Spec: v1alpha1.QueueUnitSpec{PodSets: []v1alpha1.PodSet{{Name: "main", Count: 10, MinCount: ptr.To[int32](4)}}},
		Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseDequeued, Attempts: 1,
			AdmittedPodSets: []v1alpha1.AdmittedPodSet{{Name: "main", Count: 6}}},
	}
	resized, err := decision.Resized(job.New(), held, unit)
	if err != nil {
		t.Fatal(err)
	}
	release, err := releasePatch(job.New(), job.New().Kind(), held, decision.Attempt(unit), resized)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"metadata":{"annotations":{"kube-queue/admitted-count":"main=6","kube-queue/original-count":"main=10","kube-queue/released":"1",` +
		`"scheduling.x-k8s.io/suspend":"false"},"resourceVersion":"7","uid":"u"},"spec":{"parallelism":6,"suspend":false}}`; string(release) != want {
		t.Errorf("the release is\n%s, want\n%s", release, want)
	}

	runs := held.DeepCopy()
	runs.Annotations = map[string]string{"scheduling.x-k8s.io/suspend": "false", "kube-queue/original-count": "main=10", "kube-queue/admitted-count": "main=6"}
	runs.Spec.Parallelism, runs.Spec.Suspend = ptr.To[int32](6), ptr.To(false)
	suspend, err := suspendPatch(job.New(), job.New().Kind(), runs, false)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"metadata":{"annotations":{"kube-queue/admitted-count":null,"kube-queue/original-count":null,` +
		`"scheduling.x-k8s.io/suspend":"true"},"resourceVersion":"7","uid":"u"},"spec":{"parallelism":10,"suspend":true}}`; string(suspend) != want {
		t.Errorf("the suspension is\n%s, want\n%s", suspend, want)
	}
}
