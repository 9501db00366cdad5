package reconciler

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/extensions/job"
)

// counting counts how often the pods of a job are computed.
type counting struct {
	framework.Adapter
	times int
}

func (c *counting) Pods(job framework.Object) (framework.Pods, error) {
	c.times++
	return c.Adapter.Pods(job)
}

func TestTheRequestsOfAReleasedJobAreComputedOnceForEachOfItsVersions(t *testing.T) {
	adapter := &counting{Adapter: job.New()}
	r := frameworkOf(t, Options{Adapters: []framework.Adapter{adapter}}).reconcilers[0]
	run := func(version string, parallelism int32) *batchv1.Job {
		container := corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}
		return &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "u", ResourceVersion: version,
				Annotations: map[string]string{wellknown.ReleasedAnnotation: "1"}},
			Spec: batchv1.JobSpec{Parallelism: &parallelism, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}},
		}
	}
	unit := &v1alpha1.QueueUnit{
		Spec:   v1alpha1.QueueUnitSpec{Resource: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}},
		Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseRunning, Attempts: 1},
	}
	waiting := unit.DeepCopy()
	waiting.Status.Phase = v1alpha1.PhaseEnqueued
	for i, step := range []struct {
		what   string
		job    *batchv1.Job
		unit   *v1alpha1.QueueUnit
		times  int
		action decision.Action
	}{
		{"a released job is measured", run("1", 4), unit, 1, decision.Nothing},
		{"once", run("1", 4), unit, 1, decision.Nothing},
		{"a changed job is measured again", run("2", 1), unit, 2, decision.LowerRequests},
		{"and again after a failed write", run("2", 1), unit, 3, decision.LowerRequests},
		{"no longer when it was evicted", run("3", 4), waiting, 4, decision.HoldAgain},
		{"again after the next release", run("3", 4), unit, 5, decision.Nothing},
	} {
		_, decided, err := r.decide(types.NamespacedName{Namespace: "n", Name: "a"}, step.job, step.unit, noon)
		if err != nil || decided.Action != step.action || adapter.times != step.times {
			t.Errorf("step %d, %s: it decided %q, error %v, and measured %d times, not %d", i, step.what, decided.Action, err, adapter.times, step.times)
		}
	}
}
