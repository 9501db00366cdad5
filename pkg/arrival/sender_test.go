package arrival

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"
)

// creation is a created unit and the unit that it comes after.
type creation struct{ unit, after string }

// inOrder returns the order that follows from the creations: each unit comes once the unit that it names has come,
// followed by all that name it.
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

// Whatever the speed of concurrent workers, the order of arrival in each namespace can be reconstructed, and no worker
// waits for an idle one.
func TestPropertyTheOrderOfArrivalCanBeReported(t *testing.T) {
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
			all := NewSender()
			for _, key := range order {
				queue.Add(key)
			}
			queue.ShutDown()
			var mu sync.Mutex
			var running sync.WaitGroup
			for range workers {
				running.Go(func() {
					for {
						turn := all.Enter()
						key, shutdown := queue.Get()
						if shutdown {
							turn.End()
							return
						}
						work, taken := works[key], time.Now()
						takes(work.before)
						if work.creates {
							c := creation{key.Name, turn.Begin(key.Namespace, key.Name)}
							takes(work.after)
							mu.Lock()
							created[key.Namespace] = append(created[key.Namespace], c)
							mu.Unlock()
						} else {
							turn.End()
							takes(10 * work.after)
						}
						turn.End()
						mu.Lock()
						at[key] = taken
						mu.Unlock()
						queue.Done(key)
					}
				})
			}
			running.Wait()
			if len(all.creating)+len(all.turn) > 0 {
				rt.Errorf("still being created: %v, and somebody has the turn: %d", all.creating, len(all.turn))
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
			if order := inOrder(created[namespace]); !slices.Equal(order, names) {
				rt.Fatalf("in %s %v were created, which results in %v, not %v", namespace, created[namespace], order, names)
			}
		}
	})
}

// takes lets the fake time of the bubble pass.
func takes(d time.Duration) { <-time.After(d) }

// A creation does not wait for others in progress, even if they hang, and does not name completed ones.
func TestUnitsAreCreatedSideBySide(t *testing.T) {
	all := NewSender()
	begin := func(namespace, unit string) (*Turn, string) {
		turn := all.Enter()
		return turn, turn.Begin(namespace, unit)
	}
	_, hangs := begin("n", "a")
	b, afterA := begin("n", "b")
	_, other := begin("elsewhere", "x")
	b.End()
	b.End()
	c, notB := begin("n", "c")
	all.Enter().End()
	_, afterC := begin("n", "d")
	c.End()
	_, afterD := begin("n", "e")
	got := []string{hangs, afterA, other, notB, afterC, afterD}
	if want := []string{"", "a", "", "a", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("they come after %q, not %q", got, want)
	}
}
