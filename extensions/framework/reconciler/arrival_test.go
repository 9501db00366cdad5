package reconciler

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"
)

// creation is a unit as it was created.
type creation struct{ unit, after string }

// inOrder is the order that is told from creations as they came about: each is taken once
// the one is that it names, with all that name it.
func inOrder(created []creation) (order []string) {
	behind := map[string][]string{}
	var take func(string)
	take = func(unit string) {
		order = append(order, unit)
		for _, next := range behind[unit] {
			take(next)
		}
		delete(behind, unit)
	}
	for _, c := range created {
		if c.after != "" && !slices.Contains(order, c.after) {
			behind[c.after] = append(behind[c.after], c.unit)
		} else {
			take(c.unit)
		}
	}
	return order
}

// From what workers of any speed create side by side the order of arrival can be told,
// each namespace for itself, and nobody waits for one who has nothing to do.
func TestPropertyTheOrderOfArrivalCanBeTold(t *testing.T) {
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

		created := map[string][]creation{}
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
							c := creation{n.key.Name, n.begin(t.Context(), n.key.Name)}
							takes(work.after)
							mu.Lock()
							created[n.key.Namespace] = append(created[n.key.Namespace], c)
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
		want := map[string][]string{}
		for i, key := range order {
			if i > 0 && at[key].Before(at[order[i-1]]) {
				rt.Errorf("%v came after %v, but its time is before", key, order[i-1])
			}
			if !works[key].creates {
				continue
			}
			want[key.Namespace] = append(want[key.Namespace], key.Name)
		}
		for namespace, names := range want {
			if told := inOrder(created[namespace]); !slices.Equal(told, names) {
				rt.Fatalf("in %s %v were created, which tells %v, not %v", namespace, created[namespace], told, names)
			}
		}
	})
}

// Creations wait for none that is under way.
func TestUnitsAreCreatedSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := workqueue.NewTyped[types.NamespacedName]()
		all := newArrivals(queue, clock.RealClock{})
		for _, name := range []string{"a", "b", "c"} {
			queue.Add(types.NamespacedName{Name: name})
		}
		queue.ShutDown()
		a, b, c := all.take(), all.take(), all.take()
		began := time.Now()
		var after []string
		for _, n := range []*arrival{a, b} {
			after = append(after, n.begin(t.Context(), n.key.Name))
		}
		b.pass()
		after = append(after, c.begin(t.Context(), "c"))
		if want := []string{"", "a", "a"}; !slices.Equal(after, want) {
			t.Errorf("they come after %q, not %q", after, want)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("they waited %v", waited)
		}
		for _, n := range []*arrival{a, c} {
			n.pass()
		}
		for _, n := range []*arrival{a, b, c} {
			queue.Done(n.key)
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
		if after := next.begin(t.Context(), "next"); after != "" {
			t.Errorf("it comes after %q, which is not being created", after)
		}
		if waited := time.Since(began); waited != patience {
			t.Errorf("waited %v, not %v", waited, patience)
		}
		next.pass()
		hangs.pass()
		queue.Done(hangs.key)
		queue.Done(next.key)
	})
}
