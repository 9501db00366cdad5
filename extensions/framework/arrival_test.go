package framework

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"
)

// Workers of any speed do their part of the work in the order of arrival, each
// namespace for itself, and nobody waits for one who has nothing to do.
func TestPropertyUnitsAreCreatedInOrderOfArrival(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type arrived struct {
			key           types.NamespacedName
			creates       bool
			before, after time.Duration
		}
		works := map[types.NamespacedName]arrived{}
		var order []types.NamespacedName
		for i := range rapid.IntRange(1, 30).Draw(rt, "keys") {
			key := types.NamespacedName{Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "namespace"), Name: fmt.Sprint(i)}
			pause := rapid.Custom(func(rt *rapid.T) time.Duration {
				return time.Duration(rapid.IntRange(0, 20).Draw(rt, "ms")) * time.Millisecond
			})
			works[key] = arrived{key, rapid.Bool().Draw(rt, "creates"), pause.Draw(rt, "before"), pause.Draw(rt, "after")}
			order = append(order, key)
		}
		workers := rapid.IntRange(1, 8).Draw(rt, "workers")

		created := map[string][]types.NamespacedName{}
		at := map[types.NamespacedName]time.Time{}
		synctest.Test(t, func(t *testing.T) {
			queue := workqueue.NewTyped[types.NamespacedName]()
			all := newArrivals(queue, clock.RealClock{})
			for _, key := range order {
				queue.Add(key)
			}
			queue.ShutDown()
			var mu sync.Mutex
			var running sync.WaitGroup
			for range workers {
				running.Go(func() {
					for n := all.take(); n != nil; n = all.take() {
						work := works[n.key]
						takes(work.before)
						if work.creates {
							n.await(t.Context())
							takes(work.after)
							mu.Lock()
							created[n.key.Namespace] = append(created[n.key.Namespace], n.key)
							mu.Unlock()
						} else {
							n.pass()
							takes(10 * work.after)
						}
						n.pass()
						mu.Lock()
						at[n.key] = n.at
						mu.Unlock()
						queue.Done(n.key)
					}
				})
			}
			running.Wait()
			if len(all.ahead) > 0 {
				rt.Errorf("still ahead: %v", all.ahead)
			}
		})
		next := map[string]int{}
		for i, key := range order {
			if i > 0 && at[key].Before(at[order[i-1]]) {
				rt.Errorf("%v came after %v, but its time is before", key, order[i-1])
			}
			if !works[key].creates {
				continue
			}
			line := created[key.Namespace]
			if at := next[key.Namespace]; at >= len(line) || line[at] != key {
				rt.Fatalf("in %s the order was %v, not that of arrival", key.Namespace, line)
			}
			next[key.Namespace]++
		}
	})
}

// takes lets the time of the bubble, which is no real time, go by.
func takes(d time.Duration) { <-time.After(d) }

func TestOneRequestThatHangsDoesNotHoldUpItsNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := workqueue.NewTyped[types.NamespacedName]()
		all := newArrivals(queue, clock.RealClock{})
		for _, name := range []string{"hangs", "next"} {
			queue.Add(types.NamespacedName{Namespace: "a", Name: name})
		}
		queue.ShutDown()
		hangs, next := all.take(), all.take()
		began := time.Now()
		next.await(t.Context())
		if waited := time.Since(began); waited != patience {
			t.Errorf("waited %v, not %v", waited, patience)
		}
		next.pass()
		hangs.pass()
		queue.Done(hangs.key)
		queue.Done(next.key)
	})
}
