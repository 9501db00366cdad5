package reconciler

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/job"
)

// Each key is popped once for all adds since its last pop, urgent keys first, and each
// lane in order of arrival.
func TestPropertyUrgentKeysAreProcessedFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		order := newLanes()
		queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Queue: order})
		var first, second []types.NamespacedName
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := types.NamespacedName{Name: fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "key"))}
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				queue.Add(key)
				if !slices.Contains(first, key) && !slices.Contains(second, key) {
					second = append(second, key)
				}
			case 1:
				order.prioritize(key)
				queue.Add(key)
				if at := slices.Index(second, key); at >= 0 {
					second = slices.Delete(second, at, at+1)
				}
				if !slices.Contains(first, key) {
					first = append(first, key)
				}
			case 2:
				if queue.Len() != len(first)+len(second) {
					t.Fatalf("%d are queued, want %d and %d", queue.Len(), len(first), len(second))
				}
				if queue.Len() == 0 {
					continue
				}
				var want types.NamespacedName
				if len(first) > 0 {
					want, first = first[0], first[1:]
				} else {
					want, second = second[0], second[1:]
				}
				got, _ := queue.Get()
				queue.Done(got)
				if got != want {
					t.Fatalf("%v comes out, want %v of %v and %v", got, want, first, second)
				}
			}
		}
	})
}

// A key that is added again while it is processed returns in the lane of that add.
func TestAKeyThatBecomesUrgentWhileItIsProcessedReturnsFirst(t *testing.T) {
	order := newLanes()
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Queue: order})
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	queue.Add(a)
	got, _ := queue.Get()
	queue.Add(b)
	order.prioritize(a)
	queue.Add(a)
	queue.Done(got)
	if next, _ := queue.Get(); next != a {
		t.Errorf("%v comes first", next)
	}
}

func TestPlacesOfNoKeyAreNotKept(t *testing.T) {
	order := newLanes()
	key := types.NamespacedName{Name: "a"}
	for range 1000 {
		order.Push(key)
		order.prioritize(key)
		order.Touch(key)
		if order.Pop() != key || order.Len() != 0 {
			t.Fatal("the key does not come out once")
		}
	}
	if len(order.first)+len(order.second) > 0 {
		t.Errorf("%d places are kept", len(order.first)+len(order.second))
	}
}

// A changed job is urgent if and only if its unit holds quota.
func TestAJobIsUrgentWhenItsUnitHoldsQuota(t *testing.T) {
	for phase, urgent := range map[v1alpha1.QueueUnitPhase]bool{
		"": false, v1alpha1.PhaseEnqueued: false, v1alpha1.PhaseBackoff: false,
		v1alpha1.PhaseReserved: true, v1alpha1.PhaseDequeued: true, v1alpha1.PhaseRunning: true,
		v1alpha1.PhaseSucceeded: false, v1alpha1.PhaseFailed: false,
	} {
		r := frameworkOf(t, Options{Adapters: []framework.Adapter{job.New()}}).reconcilers[0]
		r.hasUnit(t, "batch/v1", "Job", "known", "j", phase)
		for _, name := range []string{"new", "known"} {
			r.jobChanged(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}})
		}
		if next, _ := r.queue.Get(); (next.Name == "known") != urgent {
			t.Errorf("phase %q: %s is looked at first", phase, next.Name)
		}
		r.queue.ShutDown()
	}
}
