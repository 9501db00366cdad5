package reconciler

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/job"
	"kube-queue.dev/kube-queue/pkg/arrival"
)

// While the creation of the first job's unit hangs, the unit of the second job is created, and says that it comes after
// that of the first. The first job must also clear a unit of its predecessor. That comes later, and nothing waits for
// it.
func TestOneRequestThatHangsDoesNotHoldUpItsNamespace(t *testing.T) {
	hangs, answer := make(chan struct{}), make(chan struct{})
	created := make(chan v1alpha1.QueueUnit, 2)
	config := jsonServer(t, func(r *http.Request) any {
		var unit v1alpha1.QueueUnit
		if err := json.NewDecoder(r.Body).Decode(&unit); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s %s comes before the units are created: %v", r.Method, r.URL, err)
		}
		if unit.Spec.ConsumerRef.Name == "first" {
			close(hangs)
			<-answer
		}
		created <- unit
		unit.ResourceVersion = "9"
		return unit
	})
	f := frameworkOf(t, Options{Config: config, Adapters: []framework.Adapter{job.New()}, Workers: 2})
	r := f.reconcilers[0]
	left := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "left", UID: "left"},
		Spec: v1alpha1.QueueUnitSpec{ConsumerRef: v1alpha1.ConsumerReference{APIVersion: "batch/v1", Kind: "Job", Name: "first", UID: "gone"}}}
	cached(t, f.units, left)
	r.memory.look.set(left.UID, noon)
	for _, name := range []string{"first", "second"} {
		held := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name), ResourceVersion: "1"},
			Spec: batchv1.JobSpec{Suspend: new(true)}}
		cached(t, r.cached, held)
		r.jobChanged(held)
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer close(answer)
	running.Go(func() { r.next(t.Context()) })
	within(t, hangs)
	running.Go(func() { r.next(t.Context()) })
	unit := within(t, created)
	if unit.Spec.ConsumerRef.Name != "second" {
		t.Errorf("the unit of %s is created", unit.Spec.ConsumerRef.Name)
	}
	if after := arrival.After(unit.Annotations); len(after) < 5 || after[:5] != "first" {
		t.Errorf("it comes after %q", after)
	}
}

// within receives a value from a channel, and fails the test if it takes too long.
func within[T any](t *testing.T, c <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(time.Minute):
		t.Fatal("it never comes")
	}
	return got
}
