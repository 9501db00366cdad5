package queue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// group is a quota of one resource at one node, known by its number.
type group struct{ room int64 }

func (g *group) Path() string                           { return "g" }
func (g *group) Queue() string                          { return "g" }
func (g *group) Nodes() []quota.NodeID                  { return []quota.NodeID{0} }
func (g *group) Charge(string, quota.Demand)            {}
func (g *group) Release(string, quota.Demand)           {}
func (g *group) Spaces(quota.Demand, func(quota.Space)) {}
func (g *group) Owed(quota.Demand) bool                 { return false }
func (g *group) Fits(d quota.Demand) *quota.Refusal {
	asked, _ := d.Requests.Get(0)
	if asked <= g.room {
		return nil
	}
	return &quota.Refusal{Reason: quota.ReasonQuotaExceeded, Asked: asked, Limit: g.room, Lack: quota.Lack{Amount: asked}}
}

func demand(amount int64) quota.Demand {
	return quota.Demand{Requests: resources.Vector(nil).With(0, amount)}
}

func TestHeapIsASortedList(t *testing.T) {
	type element struct{ value, place int }
	rapid.Check(t, func(t *rapid.T) {
		h := queue.NewHeap(func(a, b *element) bool { return a.value < b.value }, func(e *element) *int { return &e.place })
		var in []*element
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				e := &element{value: rapid.IntRange(0, 20).Draw(t, "value")}
				in = append(in, e)
				h.Set(e)
			},
			"move": func(t *rapid.T) {
				if len(in) == 0 {
					t.Skip("empty")
				}
				e := rapid.SampledFrom(in).Draw(t, "element")
				e.value = rapid.IntRange(0, 20).Draw(t, "value")
				h.Set(e)
			},
			"remove": func(t *rapid.T) {
				if len(in) == 0 {
					t.Skip("empty")
				}
				i := rapid.IntRange(0, len(in)-1).Draw(t, "index")
				h.Remove(in[i])
				h.Remove(in[i]) // a second time does nothing
				if h.Has(in[i]) {
					t.Fatal("it is still there")
				}
				in = slices.Delete(in, i, i+1)
			},
			"": func(t *rapid.T) {
				if h.Len() != len(in) {
					t.Fatalf("%d elements, want %d", h.Len(), len(in))
				}
				top, ok := h.Top()
				for _, e := range in {
					if !h.Has(e) || !ok || e.value < top.value {
						t.Fatalf("element %d with %+v on top", e.value, top)
					}
				}
			},
		})
	})
}

// drain tries until nothing is left to try, and tells who got room.
func drain(q *queue.Queue, now time.Time, take func(amount int64) bool) []string {
	var got []string
	q.Begin(now)
	for {
		item := q.Next()
		if item == nil {
			return got
		}
		shape := item.Shape()
		asked, _ := shape.Demand.Requests.Get(0)
		if take(asked) {
			q.Take(item)
			got = append(got, item.Key)
			continue
		}
		q.Refuse(shape, q.Group.Fits(shape.Demand), now)
	}
}

func TestBackoffDoublesFromOneSecondToTwenty(t *testing.T) {
	g := &group{}
	lot := queue.NewLot()
	q := queue.New(g, queue.RoundRobin, lot)
	q.Push(&queue.Item{Key: "big"}, demand(10))
	now := time.Unix(0, 0)
	drain(q, now, func(int64) bool { return false })
	for _, seconds := range []int{1, 2, 4, 8, 16, 20, 20} {
		// Just before its backoff ends another goes first, and from then on it does.
		for _, c := range []struct {
			after time.Duration
			want  string
		}{{time.Duration(seconds)*time.Second - 1, "small"}, {time.Duration(seconds) * time.Second, "big"}} {
			small := &queue.Item{Key: "small", Submitted: 1}
			q.Push(small, demand(1))
			lot.Wake(quota.Space{Node: 0, Resource: 0}, 10, func(*queue.Queue) {})
			q.Begin(now.Add(c.after))
			if first := q.Next(); first == nil || first.Key != c.want {
				t.Fatalf("backoff %d s: after %v %v is tried first, want %s", seconds, c.after, first, c.want)
			}
			q.Remove(small)
		}
		now = now.Add(time.Duration(seconds) * time.Second)
		drain(q, now, func(int64) bool { return false })
	}
}

func TestBackoffStartsAgainOnceOneOfTheShapeGotItsRoom(t *testing.T) {
	g := &group{}
	lot := queue.NewLot()
	q := queue.New(g, queue.RoundRobin, lot)
	first, second := &queue.Item{Key: "a"}, &queue.Item{Key: "b"}
	q.Push(first, demand(10))
	q.Push(second, demand(10))
	now := time.Unix(0, 0)
	refuse := func() { drain(q, now, func(int64) bool { return false }) }
	wake := func() { lot.Wake(quota.Space{Node: 0, Resource: 0}, 10, func(*queue.Queue) {}) }
	for range 5 {
		refuse()
		wake()
	}
	q.Take(first)
	refuse()
	wake()
	small := &queue.Item{Key: "small", Submitted: 1}
	q.Push(small, demand(1))
	q.Begin(now.Add(queue.InitialBackoff))
	if next := q.Next(); next != second {
		t.Errorf("after a second %v is tried first, want b", next)
	}
}

func TestFreedRoomWakesWhatItCouldHoldAndNothingElse(t *testing.T) {
	lot := queue.NewLot()
	q := queue.New(&group{}, queue.Priority, lot)
	for amount := int64(1); amount <= 10; amount++ {
		q.Push(&queue.Item{Key: fmt.Sprint(amount)}, demand(amount))
	}
	now := time.Unix(0, 0)
	drain(q, now, func(int64) bool { return false })
	if lot.Len() != 10 {
		t.Fatalf("%d shapes are parked, want 10", lot.Len())
	}
	woken := 0
	lot.Wake(quota.Space{Node: 0, Resource: 0}, 4, func(*queue.Queue) { woken++ })
	lot.Wake(quota.Space{Node: 1, Resource: 0}, 100, func(*queue.Queue) { woken++ }) // another node
	lot.Wake(quota.Space{Node: 0, Resource: 1}, 100, func(*queue.Queue) { woken++ }) // another resource
	if woken != 4 || lot.Len() != 6 {
		t.Fatalf("%d shapes woke up, %d are parked", woken, lot.Len())
	}
}

// Whatever comes and goes, the queue gives what a sorted list of its items gives.
func TestPropertyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom([]queue.Policy{queue.Priority, queue.Block}).Draw(t, "policy")
		g := &group{room: 5}
		q := queue.New(g, policy, queue.NewLot())
		amounts := map[string]int64{}
		var items []*queue.Item
		for i := range rapid.IntRange(0, 30).Draw(t, "items") {
			item := &queue.Item{Key: fmt.Sprintf("%02d", i), Priority: int32(rapid.IntRange(0, 2).Draw(t, "priority")), Submitted: int64(rapid.IntRange(0, 2).Draw(t, "submitted"))}
			amounts[item.Key] = int64(rapid.IntRange(1, 7).Draw(t, "amount"))
			q.Push(item, demand(amounts[item.Key]))
			items = append(items, item)
		}
		for len(items) > 0 && rapid.Bool().Draw(t, "remove one") {
			i := rapid.IntRange(0, len(items)-1).Draw(t, "index")
			q.Remove(items[i])
			items = slices.Delete(items, i, i+1)
		}
		slices.SortFunc(items, func(a, b *queue.Item) int {
			if a.Before(b) {
				return -1
			}
			return 1
		})
		var want []string
		for _, item := range items {
			if amounts[item.Key] <= g.room {
				want = append(want, item.Key)
			} else if policy == queue.Block {
				break
			}
		}
		if got := drain(q, time.Unix(0, 0), func(amount int64) bool { return amount <= g.room }); !slices.Equal(got, want) {
			t.Fatalf("%s: got %v, want %v", policy, got, want)
		}
		if q.Len() != len(items)-len(want) {
			t.Fatalf("%d items are left, want %d", q.Len(), len(items)-len(want))
		}
	})
}
