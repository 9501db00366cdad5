package queue_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// group is a quota of one resource at one node, known by its number.
type group struct{ room int64 }

func (g *group) Path() string                            { return "g" }
func (g *group) Queue() string                           { return "g" }
func (g *group) Nodes() []quota.NodeID                   { return []quota.NodeID{0} }
func (g *group) Charge(*quota.Charge)                    {}
func (g *group) Uncharge(*quota.Charge)                  {}
func (g *group) Spaces(*quota.Charge, func(quota.Space)) {}
func (g *group) Owed(quota.Demand, quota.Branch) bool    { return false }
func (g *group) Fits(d quota.Demand) *quota.Refusal {
	requested, _ := d.Requests.Get(0)
	if requested <= g.room {
		return nil
	}
	return &quota.Refusal{Reason: wellknown.ReasonQuotaExceeded, Asked: requested, Limit: g.room, Lack: quota.Lack{Amount: requested}}
}

func demand(amount int64) quota.Demand {
	return quota.Demand{Requests: resources.Vector(nil).With(0, amount)}
}

func TestHeapIsASortedList(t *testing.T) {
	type element struct {
		value int
		place int32
	}
	rapid.Check(t, func(t *rapid.T) {
		h := queue.NewHeap(func(a, b *element) bool { return a.value < b.value }, func(e *element) *int32 { return &e.place })
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

// drain tries items until none is left to try, and reports which got room.
func drain(q *queue.Queue, now time.Time, take func(amount int64) bool) []string {
	var got []string
	q.Begin(now)
	for {
		item := q.Next()
		if item == nil {
			return got
		}
		shape := item.Shape()
		requested, _ := shape.Demand.Requests.Get(0)
		if take(requested) {
			q.Take(item)
			got = append(got, item.Key)
			continue
		}
		q.Refuse(shape, q.Group.Fits(shape.Demand), now)
	}
}

// here is the space in which the group of these tests lacks room.
var here = quota.Space{Node: 0, Resource: 0}

// indexWith returns a wait index with the given room in space here and 100 in all others.
func indexWith(room *int64) *queue.WaitIndex { return indexOf(room, queue.DefaultBackoff()) }

func indexOf(room *int64, backoff queue.Backoff) *queue.WaitIndex {
	return queue.NewWaitIndex(func(s quota.Space) int64 {
		if s == here {
			return *room
		}
		return 100
	}, backoff)
}

func TestBackoffDoublesFromOneSecondToTwenty(t *testing.T) {
	backsOff(t, queue.DefaultBackoff(), 1, 2, 4, 8, 16, 20, 20)
}

func TestBackoffIsThatOfTheWaitIndex(t *testing.T) {
	backsOff(t, queue.Backoff{Initial: 3 * time.Second, Max: 7 * time.Second}, 3, 6, 7, 7)
	backsOff(t, queue.Backoff{Initial: 2 * time.Second, Max: 2 * time.Second}, 2, 2, 2)
}

// backsOff refuses a shape again and again.
func backsOff(t *testing.T, backoff queue.Backoff, want ...int) {
	t.Helper()
	g := &group{}
	room := int64(0)
	index := indexOf(&room, backoff)
	q := queue.New(g, queue.RoundRobin, index)
	q.Push(&queue.Item{Key: "big"}, demand(10), 0)
	now := time.Unix(0, 0)
	drain(q, now, func(int64) bool { return false })
	for _, seconds := range want {
		// Just before its backoff ends, another item goes first. After that, it does.
		for _, c := range []struct {
			after time.Duration
			want  string
		}{{time.Duration(seconds)*time.Second - 1, "small"}, {time.Duration(seconds) * time.Second, "big"}} {
			small := &queue.Item{Key: "small", Submitted: 1}
			q.Push(small, demand(1), 0)
			room = 10
			index.Wake(here, func(*queue.Queue) {})
			q.Begin(now.Add(c.after))
			if first := q.Next(); first == nil || first.Key != c.want {
				t.Fatalf("backoff %d s: after %v %v is tried first, want %s", seconds, c.after, first, c.want)
			}
			q.Remove(small)
		}
		now = now.Add(time.Duration(seconds) * time.Second)
		room = 0
		drain(q, now, func(int64) bool { return false })
	}
}

func TestFreedRoomWakesWhatItCouldHoldAndNothingElse(t *testing.T) {
	room := int64(0)
	index := indexWith(&room)
	q := queue.New(&group{}, queue.Priority, index)
	for amount := int64(1); amount <= 10; amount++ {
		q.Push(&queue.Item{Key: fmt.Sprint(amount), Submitted: -amount}, demand(amount), 0)
	}
	now := time.Unix(0, 0)
	drain(q, now, func(int64) bool { return false })
	if index.Len() != 10 {
		t.Fatalf("%d shapes are parked, want 10", index.Len())
	}
	room = 4
	for _, elsewhere := range []quota.Space{{Node: 1, Resource: 0}, {Node: 0, Resource: 1}, {Node: 0, Resource: 0, Bound: quota.Min}} {
		index.Wake(elsewhere, func(*queue.Queue) { t.Errorf("room in %v woke somebody who lacks none there", elsewhere) })
	}
	index.Wake(here, func(*queue.Queue) {})
	var tried []int64
	drain(q, now, func(requested int64) bool {
		tried = append(tried, requested)
		if requested <= room {
			room -= requested
			return true
		}
		return false
	})
	// The largest item that fits is the first in the queue and takes all the room.
	if !slices.Equal(tried, []int64{4}) || index.Len() != 9 {
		t.Errorf("%v were tried, %d are parked", tried, index.Len())
	}
}

// No matter what is refused, freed, taken and removed, room goes to the first item in the queue that fits, and nothing
// is tried again before what it lacks was free.
func TestPropertyRoomGoesToTheFirstThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &litLine{t: t, now: time.Unix(1, 0), shapes: map[*queue.Shape]*litShape{}}
		l.policy = rapid.SampledFrom([]*queue.Policy{queue.Priority, queue.RoundRobin}).Draw(t, "policy")
		l.index = indexWith(&l.room)
		l.queue = queue.New(&group{}, l.policy, l.index)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				l.push()
			case 2:
				if len(l.items) > 0 {
					i := rapid.SampledFrom(l.items).Draw(t, "removed")
					l.remove(i)
					l.queue.Remove(i)
				}
			case 3:
				l.free(int64(rapid.IntRange(0, 12).Draw(t, "room")))
			case 4:
				l.now = l.now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			}
			l.drain()
		}
	})
}

// litLine is a queue and a model of it.
type litLine struct {
	t      *rapid.T
	room   int64
	now    time.Time
	policy *queue.Policy
	index  *queue.WaitIndex
	queue  *queue.Queue
	items  []*queue.Item
	pushed int
	shapes map[*queue.Shape]*litShape
}

type litShape struct {
	// can be tried: it is new, or there was room for it since it was refused.
	may bool
	// refused are the backoffs by the priority of the item that was refused.
	refused map[int32]*litRefused
	// served is when it last got room.
	served time.Time
}

type litRefused struct {
	backoff time.Duration
	until   time.Time
}

// late reports whether the first item of the shape is in backoff: it or an item with higher priority was refused.
func (l *litLine) late(shape *queue.Shape) bool {
	if l.policy != queue.RoundRobin {
		return false
	}
	head := slices.MinFunc(shape.Items(), func(a, b *queue.Item) int { return cmp.Compare(b.Priority, a.Priority) })
	refused := l.shapes[shape].refused
	for _, priority := range slices.Sorted(maps.Keys(refused)) {
		if priority >= head.Priority {
			return l.now.Before(refused[priority].until)
		}
	}
	return false
}

func (l *litLine) push() {
	l.pushed++
	item := &queue.Item{Key: fmt.Sprint(rapid.IntRange(0, 9).Draw(l.t, "key"), " ", l.pushed),
		Priority: int32(rapid.IntRange(0, 3).Draw(l.t, "priority")), Submitted: int64(rapid.IntRange(0, 4_000_000).Draw(l.t, "submitted"))}
	s := l.queue.Push(item, demand(int64(rapid.IntRange(1, 9).Draw(l.t, "amount"))), 0)
	if l.shapes[s] == nil {
		l.shapes[s] = &litShape{may: true, refused: map[int32]*litRefused{}}
	}
	l.items = append(l.items, item)
}

func (l *litLine) remove(i *queue.Item) {
	l.items = slices.DeleteFunc(l.items, func(other *queue.Item) bool { return other == i })
	if i.Shape().Len() == 1 {
		delete(l.shapes, i.Shape())
	}
}

func (l *litLine) free(room int64) {
	l.room = room
	l.index.Wake(here, func(*queue.Queue) {})
	for shape, s := range l.shapes {
		s.may = s.may || requested(shape) <= room
	}
}

// first returns the first item in the queue that fits, with those in backoff last.
func (l *litLine) first() (first *queue.Item) {
	late := func(i *queue.Item) bool { return l.late(i.Shape()) }
	for _, i := range l.items {
		if requested(i.Shape()) > l.room {
			continue
		}
		if first == nil || late(first) && !late(i) || late(first) == late(i) && before(i, first) {
			first = i
		}
	}
	return first
}

func (l *litLine) drain() {
	l.queue.Begin(l.now)
	for next := l.queue.Next(); next != nil; next = l.queue.Next() {
		shape := next.Shape()
		if requested(shape) <= l.room {
			if want := l.first(); next != want {
				l.t.Fatalf("%+v gets the room, want %+v", next, want)
			}
			l.room -= requested(shape)
			l.shapes[shape].served = l.now
			for _, refused := range l.shapes[shape].refused {
				refused.backoff = 0
			}
			l.remove(next)
			l.queue.Take(next)
			continue
		}
		s := l.shapes[shape]
		if !s.may {
			l.t.Fatalf("%+v is tried again for nothing", next)
		}
		s.may = false
		if !s.served.Equal(l.now) {
			maps.DeleteFunc(s.refused, func(p int32, r *litRefused) bool { return p != next.Priority && !l.now.Before(r.until) })
			if s.refused[next.Priority] == nil {
				s.refused[next.Priority] = &litRefused{}
			}
			refused := s.refused[next.Priority]
			refused.backoff = min(max(2*refused.backoff, queue.DefaultBackoff().Initial), queue.DefaultBackoff().Max)
			refused.until = l.now.Add(refused.backoff)
		}
		l.queue.Refuse(shape, l.queue.Group.Fits(shape.Demand), l.now)
	}
	if first := l.first(); first != nil {
		l.t.Fatalf("%+v fits and is not tried", first)
	}
	l.checkSubmissions()
}

func (l *litLine) checkSubmissions() {
	got, is := l.queue.Submissions()
	if is != (len(l.items) > 0) {
		l.t.Fatalf("%d items, but submissions: %v", len(l.items), is)
	}
	sum, first := int64(0), int64(math.MaxInt64)
	for _, i := range l.items {
		sum, first = sum+i.Submitted, min(first, i.Submitted)
	}
	if is && (got.First.Unix() != first/1e6 || got.Mean.UnixMicro() != sum/int64(len(l.items))) {
		l.t.Fatalf("submissions are %+v, want first %d and mean %d", got, first, sum/int64(len(l.items)))
	}
}

func requested(s *queue.Shape) int64 {
	amount, _ := s.Demand.Requests.Get(0)
	return amount
}

// before is the order of all policies of the package, as the documentation of the field describes it.
func before(a, b *queue.Item) bool { return sign(a, b) < 0 }

func sign(a, b *queue.Item) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Submitted, b.Submitted), cmp.Compare(a.Key, b.Key))
}

// newestFirst is the policy of docs/development/adding-a-policy.md.
var newestFirst = &queue.Policy{Name: "NewestFirst", Before: func(a, b *queue.Item) bool { return b.Older(a) }, FrontOnly: true}

// No matter which items come and go and how the policy changes, the queue returns the same as a sorted list of its
// items.
func TestPropertyOrder(t *testing.T) {
	lengths := map[string]queue.Length{} // 0 counts as half a day
	orders := map[*queue.Policy]func(a, b *queue.Item) int{queue.Priority: sign, queue.Block: sign, queue.ShortestFirst: func(a, b *queue.Item) int {
		unknown := queue.LengthOf(43200)
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(cmp.Or(lengths[a.Key], unknown), cmp.Or(lengths[b.Key], unknown)), sign(a, b))
	}, newestFirst: func(a, b *queue.Item) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(b.Submitted, a.Submitted), cmp.Compare(b.Key, a.Key))
	}}
	policies := rapid.SampledFrom(slices.SortedFunc(maps.Keys(orders), func(a, b *queue.Policy) int { return cmp.Compare(a.Name, b.Name) }))
	rapid.Check(t, func(t *rapid.T) {
		policy := policies.Draw(t, "policy")
		g := &group{room: 5}
		room := int64(0)
		q := queue.New(g, policy, indexWith(&room))
		amounts := map[string]int64{}
		var items []*queue.Item
		for i := range rapid.IntRange(0, 30).Draw(t, "items") {
			item := &queue.Item{Key: fmt.Sprintf("%02d", i), Priority: int32(rapid.IntRange(0, 2).Draw(t, "priority")), Submitted: int64(rapid.IntRange(0, 2).Draw(t, "submitted"))}
			amounts[item.Key] = int64(rapid.IntRange(1, 7).Draw(t, "amount"))
			lengths[item.Key] = queue.LengthOf(rapid.SampledFrom([]int32{0, 0, 1, 60, 43200, 45000, 1 << 30}).Draw(t, "limit"))
			q.Push(item, demand(amounts[item.Key]), lengths[item.Key])
			items = append(items, item)
			if rapid.IntRange(0, 9).Draw(t, "change") == 0 {
				if rapid.Bool().Draw(t, "some are parked") {
					g.room = 0
					drain(q, time.Unix(0, 0), func(int64) bool { return false })
					g.room = 5
				}
				policy = policies.Draw(t, "policy")
				q.SetPolicy(policy)
			}
		}
		for len(items) > 0 && rapid.Bool().Draw(t, "remove one") {
			i := rapid.IntRange(0, len(items)-1).Draw(t, "index")
			q.Remove(items[i])
			items = slices.Delete(items, i, i+1)
		}
		room = g.room
		q.SetPolicy(policy) // tries all again
		slices.SortFunc(items, orders[policy])
		var want []string
		for _, item := range items {
			if amounts[item.Key] <= g.room {
				want = append(want, item.Key)
			} else if policy.FrontOnly {
				break
			}
		}
		if got := drain(q, time.Unix(0, 0), func(amount int64) bool { return amount <= g.room }); !slices.Equal(got, want) {
			t.Fatalf("%s: got %v, want %v", policy, got, want)
		}
		left := 0
		q.Shapes(func(s *queue.Shape) { left += s.Len() })
		if left != len(items)-len(want) {
			t.Fatalf("%d items are left, want %d", left, len(items)-len(want))
		}
	})
}

func TestLengthsAreOrderedAndFine(t *testing.T) {
	last := queue.LengthOf(0)
	for seconds := int32(1); seconds > 0 && seconds < 1<<30; seconds += 1 + seconds/100 {
		l := queue.LengthOf(seconds)
		if l < last || l == 0 {
			t.Fatalf("%d s has length %d, after %d", seconds, l, last)
		}
		if more := queue.LengthOf(seconds + seconds/4 + 1); more == l {
			t.Fatalf("%d s and a quarter more have the same length", seconds)
		}
		last = l
	}
	if queue.LengthOf(-1) != 0 || queue.LengthOf(1<<31-1) < last {
		t.Error("the first or the last length is wrong")
	}
}
