package framework

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"
)

// Whatever is added when, each key comes out once for all that was added since it came
// out last, those that hurry first, and each lane in order of arrival.
func TestPropertyWhoHurriesIsWorkedOnFirst(t *testing.T) {
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
				order.hurry(key)
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

// A key that is worked on while it is added again comes back in the lane that it was
// added to.
func TestWhoHurriesWhileItIsWorkedOnComesBackFirst(t *testing.T) {
	order := newLanes()
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Queue: order})
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	queue.Add(a)
	got, _ := queue.Get()
	queue.Add(b)
	order.hurry(a)
	queue.Add(a)
	queue.Done(got)
	if next, _ := queue.Get(); next != a {
		t.Errorf("%v comes first", next)
	}
}
