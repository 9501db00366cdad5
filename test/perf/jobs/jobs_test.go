package jobs

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"kube-queue.dev/kube-queue/test/perf/pace"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/require"
)

func TestJobsDifferOnlyInTheMarkOfTheirQueue(t *testing.T) {
	suspended := map[string]string{"scheduling.x-k8s.io/suspend": "true"}
	plain := Queue{Name: None}.job("one")
	for text, want := range map[string]struct {
		suspend             bool
		annotations, labels map[string]string
	}{"none": {}, "kube-queue": {true, suspended, nil}, "label:q=fast": {true, nil, map[string]string{"q": "fast"}}} {
		queue, err := ParseQueue(text)
		require.NoError(t, err)
		job := queue.job("one")
		if *job.Spec.Suspend != want.suspend || !maps.Equal(job.Annotations, want.annotations) || !maps.Equal(job.Labels, want.labels) {
			t.Errorf("a job of %s: %+v", text, job)
		}
		job.Annotations, job.Labels, job.Spec.Suspend = nil, nil, plain.Spec.Suspend
		if !reflect.DeepEqual(job, plain) {
			t.Errorf("a job of %s is %+v, that of none %+v", text, job, plain)
		}
	}
}

// ending returns a bench whose jobs complete when they are created.
func ending() (*bench, *fake.Clientset) {
	client := fake.NewClientset()
	client.PrependReactor("create", "jobs", func(action kubetesting.Action) (bool, runtime.Object, error) {
		job := action.(kubetesting.CreateAction).GetObject().(*batchv1.Job)
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		return false, nil, nil
	})
	return &bench{queue: Queue{Name: None}, rig: &rig.Rig{Kube: client}}, client
}

func TestEachJobIsCreatedAndCountedOnce(t *testing.T) {
	b, client := ending()
	ends, err := b.watch(t.Context(), "job-")
	require.NoError(t, err)
	for prefix, count := range map[string]int{"warm-": 3, "job-": 100} {
		require.NoError(t, b.create(t.Context(), prefix, count, 10_000))
	}
	all, err := client.BatchV1().Jobs(Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) != 103 {
		t.Errorf("%d exist: %v", len(all.Items), err)
	}
	done := 0
	if err := pace.Until(t.Context(), time.Millisecond, time.Minute, errors.New("late"), func(context.Context) (bool, error) {
		done, _ = ends.state()
		return done == 100, nil
	}); err != nil {
		t.Errorf("%d are counted: %v", done, err)
	}
	complete := all.Items[0]
	running := complete
	running.Name, running.Status.Conditions = "job-running", nil
	ends.see(&complete)
	ends.see(&running)
	if done, last := ends.state(); done != 100 || last.IsZero() {
		t.Errorf("%d are counted, the last at %v", done, last)
	}
}
