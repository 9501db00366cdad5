package job

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/adaptertest"
)

func TestJobs(t *testing.T) { adaptertest.Run(t, New()) }

func TestDamagedJobs(t *testing.T) { adaptertest.Fuzz(t, New()) }

func TestTheEndOfAJobKeepsItsReason(t *testing.T) {
	for of, succeeded := range map[batchv1.JobConditionType]bool{batchv1.JobComplete: true, batchv1.JobFailed: false} {
		status := &batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: of, Status: corev1.ConditionTrue, Reason: "r", Message: "m"}}}
		if got := end(status); got == nil || got.Succeeded != succeeded || got.Reason != "r" || got.Message != "m" {
			t.Errorf("%s is the end %+v", of, got)
		}
	}
}

func TestWhatCanGrow(t *testing.T) {
	for _, c := range []struct {
		name   string
		job    batchv1.Job
		want   int32
		cannot bool
	}{
		{"a work queue", batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](3)}}, 3, false},
		{"all its completions run at once", batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](3), Completions: ptr.To[int32](3)}}, 0, true},
		{"it may start with fewer", batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{wellknown.MinCountAnnotation: "main=1"}},
			Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](3), Completions: ptr.To[int32](3)}}, 3, false},
		{"fewer than its completions", batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](3), Completions: ptr.To[int32](9)}}, 3, false},
		{"an Indexed one", batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](3), Completions: ptr.To[int32](3), CompletionMode: ptr.To(batchv1.IndexedCompletion)}}, 3, false},
		{"one that has grown since its release", batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{wellknown.PodAnnotationsAnnotation: "kube-queue/growth=main"}},
			Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](9), Completions: ptr.To[int32](9)}}, 9, false},
	} {
		growing := New().(framework.Growing).Growing(&c.job, nil)
		if pods, can := growing[podSet]; can == c.cannot || pods != c.want {
			t.Errorf("%s: %v", c.name, growing)
		}
	}
}
