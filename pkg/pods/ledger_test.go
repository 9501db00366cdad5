package pods

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// world is what exists. Each figure is computed from it again on request.
type world struct {
	objects map[string]*thing
	holders map[string]bool
	exempt  map[string]bool
}

type thing struct {
	seen bool
	// names is the owner that its newest version names, and owner the one that it counts through.
	names, owner string
	// owns is whether something ever belonged to it, and exempted whether it ever was exempt.
	owns, exempted bool
	pod            *Pod
}

const ns = "ns"

// attach makes an object name an owner. It stays with a holder, and leaves an owner that was never exempt only for a
// holder.
func (w *world) attach(o *thing, owner string) {
	o.names = owner
	if w.holders[w.holderOf(o.owner)] {
		return
	}
	if o.owner == "" || w.object(o.owner).exempted || w.holders[w.holderOf(owner)] {
		w.link(o, owner)
	}
}

func (w *world) link(o *thing, owner string) {
	o.owner = owner
	if owner != "" {
		w.object(owner).owns = true
	}
}

// holderOf walks up from a pod to the first object that is a holder or exempt.
func (w *world) holderOf(id string) string {
	for depth := 0; id != "" && depth <= maxDepth; depth++ {
		if w.holders[id] || w.exempt[id] {
			return id
		}
		o := w.objects[id]
		if o == nil {
			return ""
		}
		id = o.owner
	}
	return ""
}

// forget drops objects that do not exist, hold nothing and have nothing below them. An object that had something below
// it is known as long as it has a holder.
func (w *world) forget() {
	for again := true; again; {
		again = false
		for id, o := range w.objects {
			hasParts := false
			for _, part := range w.objects {
				hasParts = hasParts || part.owner == id
			}
			if !o.seen && !hasParts && !w.holders[id] && !w.exempt[id] && !(o.owns && w.holderOf(id) != "") {
				delete(w.objects, id)
				again = true
			}
		}
	}
}

// requested returns the sum for a holder, or for the strays.
func (w *world) requested(holder string, lasting bool) map[resources.ID]int64 {
	sum, shared := map[resources.ID]int64{}, map[string][]Shared{}
	for id, o := range w.objects {
		if o.pod == nil || lasting && o.pod.Terminating || w.holderOf(id) != holder || holder == "" && !o.pod.Stray {
			continue
		}
		for _, a := range o.pod.Requests {
			sum[a.ID] += a.Value
		}
		for _, s := range o.pod.Shared {
			shared[s.Key] = append(shared[s.Key], s)
		}
	}
	for _, all := range shared {
		once, names := map[resources.ID]int64{}, map[string]bool{}
		for _, s := range all {
			names[fmt.Sprint(ids(s.Requests))] = true
		}
		for _, s := range all {
			counted := s.Requests
			if len(names) > 1 {
				counted = s.Mixed
			}
			for _, a := range counted {
				once[a.ID] = max(once[a.ID], a.Value)
			}
		}
		for id, value := range once {
			sum[id] += value
		}
	}
	maps.DeleteFunc(sum, func(_ resources.ID, value int64) bool { return value == 0 })
	return sum
}

func ids(v resources.Vector) (ids []resources.ID) {
	for _, a := range v {
		ids = append(ids, a.ID)
	}
	return ids
}

// unschedulable compares how many pods of a holder are busy, and how many have no node.
func (w *world) unschedulable(t *rapid.T, holder string, l *Ledger) {
	busy, n, of, messages := 0, 0, 0, map[string]int{}
	for id, o := range w.objects {
		if o.pod == nil || w.holderOf(id) != holder || holder == "" && !o.pod.Stray {
			continue
		}
		if !o.pod.Idle {
			busy++
		}
		if o.pod.Terminating {
			continue
		}
		of++
		if o.pod.Unschedulable != "" {
			n++
			messages[o.pod.Unschedulable]++
		}
	}
	if got := l.Busy(Holder{ns, holder}); got != busy {
		t.Fatalf("%d pods of %q are busy, want %d", got, holder, busy)
	}
	gotN, gotOf, message := l.Unschedulable(Holder{ns, holder})
	if gotN != n || gotOf != of || (message == "") != (n == 0) {
		t.Fatalf("%d of %d pods of %q cannot be scheduled: %q, want %d of %d", gotN, gotOf, holder, message, n, of)
	}
	for other, count := range messages {
		if count > messages[message] || count == messages[message] && other < message {
			t.Fatalf("%q is said by %d pods of %q, and %q by %d", message, messages[message], holder, other, count)
		}
	}
}

// The order of a map does not decide which of two equally frequent messages is shown.
func TestOfTwoMessagesOfEquallyManyPodsTheFirstInOrderIsShown(t *testing.T) {
	for range 100 {
		l := New()
		l.Hold(Holder{ns, "job"})
		for _, text := range []string{"no gpu", "no cpu", "no memory"} {
			l.Pod(Pod{Namespace: ns, UID: text, Owner: "job", Unschedulable: text})
		}
		if _, _, message := l.Unschedulable(Holder{ns, "job"}); message != "no cpu" {
			t.Fatalf("the message is %q", message)
		}
	}
}

func (w *world) object(id string) *thing {
	if w.objects[id] == nil {
		w.objects[id] = new(thing)
	}
	return w.objects[id]
}

func drawPod(t *rapid.T, uid, owner string) Pod {
	p := Pod{Namespace: ns, UID: uid, Owner: owner, Idle: rapid.Bool().Draw(t, "idle"), Terminating: rapid.Bool().Draw(t, "terminating"), Stray: rapid.Bool().Draw(t, "stray")}
	p.Unschedulable = rapid.SampledFrom([]string{"", "", "no cpu", "no gpu"}).Draw(t, "unschedulable")
	p.Requests = drawVector(t)
	for _, key := range []string{"a", "b"} {
		if rapid.IntRange(0, 2).Draw(t, "shares") == 0 {
			p.Shared = append(p.Shared, Shared{key, drawVector(t), drawVector(t)})
		}
	}
	return p
}

func drawVector(t *rapid.T) (v resources.Vector) {
	for id := range resources.ID(3) {
		if rapid.Bool().Draw(t, "requests") {
			v = append(v, resources.Amount{ID: id, Value: rapid.Int64Range(1, 5).Draw(t, "value")})
		}
	}
	return v
}

// For any objects, seen in any order: each sum is correct by definition, and each change of a sum is reported.
func TestPropertyEachPodCountsForItsNearestHolder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{objects: map[string]*thing{}, holders: map[string]bool{}, exempt: map[string]bool{}}
		l := New()
		ids := rapid.SampledFrom([]string{"job1", "job2", "cluster", "driver", "pod1", "pod2", "pod3", "pod4"})
		owners := rapid.SampledFrom([]string{"", "job1", "job2", "cluster", "driver", "pod1", "label"})
		before := map[string]resources.Vector{}
		t.Repeat(map[string]func(*rapid.T){
			"a pod is seen": func(t *rapid.T) {
				p := drawPod(t, ids.Draw(t, "uid"), owners.Draw(t, "owner"))
				o := w.object(p.UID)
				if o.pod == nil || o.names != p.Owner || !o.pod.Same(&p) {
					w.attach(o, p.Owner)
				}
				o.seen, o.pod = true, &p
				l.Pod(p)
			},
			"an owner is seen": func(t *rapid.T) {
				id, owner := ids.Draw(t, "id"), owners.Draw(t, "owner")
				if owner == "" && w.objects[id] == nil {
					l.Object(ns, id, owner) // nothing belongs to it, so it is not needed
					return
				}
				o := w.object(id)
				o.seen = true
				w.attach(o, owner)
				l.Object(ns, id, owner)
			},
			"something is gone": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				if o := w.objects[id]; o != nil {
					o.seen, o.pod = false, nil
				}
				delete(w.exempt, id)
				l.Gone(ns, id)
			},
			"an object is exempt": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				w.exempt[id] = true
				w.object(id).exempted = true
				l.Exempt(ns, id, true)
			},
			"an object is exempt no longer": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				delete(w.exempt, id)
				l.Exempt(ns, id, false)
			},
			"an object has the label": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				if o := w.object("label"); w.holderOf(o.owner) == "" {
					o.seen, o.names = true, id
					w.link(o, id)
				}
				l.Label(ns, "label", id)
			},
			"an object loses the label": func(*rapid.T) {
				if o := w.objects["label"]; o != nil && !w.holders[o.owner] {
					o.seen = false
				}
				l.Unlabel(ns, "label")
			},
			"a holder is declared": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				w.holders[id] = true
				w.object(id)
				l.Hold(Holder{ns, id})
			},
			"a holder is dropped": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				delete(w.holders, id)
				l.Drop(Holder{ns, id})
			},
			"": func(t *rapid.T) {
				w.forget()
				changed := map[string]bool{}
				for _, h := range l.Changed() {
					changed[h.UID] = true
				}
				for _, holder := range append(slices.Sorted(maps.Keys(w.holders)), "") {
					h := Holder{ns, holder}
					equal(t, holder, l.Requested(h), w.requested(holder, false))
					equal(t, holder, l.Lasting(h), w.requested(holder, true))
					if !l.Requested(h).Equal(before[holder]) && !changed[holder] {
						t.Fatalf("the change of %q was not reported", holder)
					}
				}
				clear(before)
				for _, holder := range append(slices.Sorted(maps.Keys(w.holders)), "") {
					before[holder] = l.Requested(Holder{ns, holder})
					w.unschedulable(t, holder, l)
				}
			},
		})
		for id := range w.objects {
			l.Gone(ns, id)
		}
		for id := range w.holders {
			l.Drop(Holder{ns, id})
		}
		l.Unlabel(ns, "label")
		if n := l.namespaces[ns]; n != nil {
			if len(n.strays.all.amounts) > 0 || len(n.strays.lasting.amounts) > 0 || len(n.strays.all.shared) > 0 || n.strays.pods != 0 {
				t.Fatalf("left over: %v", n.strays)
			}
			for _, o := range n.objects { // cycles are all that may be left
				if o.above == nil || o.pod != nil || o.holds {
					t.Fatalf("left over: %+v", o)
				}
			}
		}
	})
}

func equal(t *rapid.T, holder string, got resources.Vector, want map[resources.ID]int64) {
	t.Helper()
	sum := map[resources.ID]int64{}
	for _, a := range got {
		sum[a.ID] = a.Value
	}
	if !maps.Equal(sum, want) {
		t.Fatalf("the pods of %q request %v, want %v", holder, sum, want)
	}
}

func one(uid, owner string, stray bool) Pod {
	return Pod{Namespace: ns, UID: uid, Owner: owner, Requests: resources.Vector{{ID: 1, Value: 1}}, Stray: stray}
}

func (l *Ledger) of(holder string) int64 {
	value, _ := l.Requested(Holder{ns, holder}).Get(1)
	return value
}

func TestWhatPodsShareCountsOnceForEachHolder(t *testing.T) {
	l := New()
	sharing := func(uid, owner string, value int64) Pod {
		p := one(uid, owner, true)
		p.Shared = []Shared{{Key: "claim", Requests: resources.Vector{{ID: 1, Value: value}}}}
		return p
	}
	l.Hold(Holder{ns, "job"})
	for _, step := range []struct {
		name       string
		does       func()
		job, other int64
	}{
		{"the first pod", func() { l.Pod(sharing("p1", "job", 8)) }, 9, 0},
		{"another pod", func() { l.Pod(sharing("p2", "job", 8)) }, 10, 0},
		{"a pod of no job", func() { l.Pod(sharing("p3", "", 8)) }, 10, 9},
		{"more of the claim, which one pod shows first", func() { l.Pod(sharing("p1", "job", 10)) }, 12, 9},
		{"and then all", func() { l.Pod(sharing("p2", "job", 10)) }, 12, 9},
		{"less of it", func() { l.Pod(sharing("p1", "job", 1)); l.Pod(sharing("p2", "job", 1)) }, 3, 9},
		{"one pod ends", func() { l.Gone(ns, "p1") }, 2, 9},
		{"the last pod ends", func() { l.Gone(ns, "p2") }, 0, 9},
	} {
		step.does()
		if l.of("job") != step.job || l.of("") != step.other {
			t.Errorf("%s: the job has %d and the others %d, want %d and %d", step.name, l.of("job"), l.of(""), step.job, step.other)
		}
		if broken := l.Audit(); len(broken) > 0 {
			t.Errorf("%s: %v", step.name, broken)
		}
	}
}

func TestWhatPodsOfDifferentTypesShareCountsAsMixed(t *testing.T) {
	const gpu, h100, a100, other = 1, 2, 3, 4
	devices := func(kind resources.ID) resources.Vector {
		return resources.Vector{{ID: gpu, Value: 8}, {ID: kind, Value: 8}}
	}
	sharing := func(uid string, kind resources.ID) Pod {
		return Pod{Namespace: ns, UID: uid, Owner: "job", Shared: []Shared{{"claim", devices(kind), devices(other)}}}
	}
	l := New()
	l.Hold(Holder{ns, "job"})
	for _, step := range []struct {
		name string
		does func()
		want resources.ID
	}{
		{"one type", func() { l.Pod(sharing("p1", h100)); l.Pod(sharing("p2", h100)) }, h100},
		{"another type", func() { l.Pod(sharing("p3", a100)) }, other},
		{"one type again", func() { l.Gone(ns, "p3") }, h100},
	} {
		step.does()
		if got := l.Requested(Holder{ns, "job"}); !got.Equal(devices(step.want)) {
			t.Errorf("%s: the pods request %v, want %v", step.name, got, devices(step.want))
		}
		if broken := l.Audit(); len(broken) > 0 {
			t.Errorf("%s: %v", step.name, broken)
		}
	}
}

// A Spark driver may be deleted while it creates executors.
func TestAPodCountsForTheHolderOfItsDeletedOwner(t *testing.T) {
	l := New()
	l.Hold(Holder{ns, "app"})
	l.Pod(one("driver", "app", false))
	l.Pod(one("exec-1", "driver", false))
	l.Gone(ns, "driver")
	l.Gone(ns, "exec-1")
	if n := l.Pods(Holder{ns, "app"}); n != 0 {
		t.Fatalf("%d pods are left", n)
	}
	l.Pod(one("exec-2", "driver", false))
	if l.of("app") != 1 {
		t.Fatalf("the pods of the application request %d, want 1", l.of("app"))
	}
	l.Gone(ns, "exec-2")
	l.Drop(Holder{ns, "app"})
	if len(l.namespaces) != 0 {
		t.Fatalf("still known: %v", l.namespaces[ns].objects)
	}
}

func TestAPodThatLostItsControllerCountsForTheHolderWithItsLabel(t *testing.T) {
	const label = "training.kubeflow.org/job-name=train"
	for _, order := range []string{"label first", "pod first"} {
		l := New()
		l.Hold(Holder{ns, "old"})
		l.Pod(one("p", "old", false))
		if order == "pod first" {
			l.Pod(one("p", label, true))
		}
		l.Label(ns, label, "old")
		l.Hold(Holder{ns, "new"}) // a job of the same name, created after the old one was deleted
		l.Label(ns, label, "new")
		l.Pod(one("p", label, true))
		if l.of("old") != 1 || l.of("new") != 0 || l.of("") != 0 {
			t.Errorf("%s: the pods of the old, the new and of no job request %d, %d, %d", order, l.of("old"), l.of("new"), l.of(""))
		}
		l.Unlabel(ns, label) // its holder remains
		l.Gone(ns, "old")
		if l.of("old") != 1 {
			t.Errorf("%s: the pods of the old job request %d", order, l.of("old"))
		}
		l.Drop(Holder{ns, "old"})
		if l.of("") != 1 {
			t.Errorf("%s: the pods of no job request %d", order, l.of(""))
		}
	}
}
