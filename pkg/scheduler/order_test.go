package scheduler_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/oracle"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// No matter which room is freed, units are released in the order of spec section 5: of the first unit of each queue
// that fits, at each level of the tree, the branch that is owed its unit goes first, then the one with the higher queue
// priority, then the one with the smaller share, then the one with the older unit. An oracle that tries all units each
// time decides which.
func TestPropertyOrderBetweenGroups(t *testing.T) {
	law := judge(t, "units are released in order")
	rapid.Check(t, func(t *rapid.T) {
		draw := drawBorrowers
		if rapid.Bool().Draw(t, "deep tree") {
			draw = drawDeep
		}
		w := newWorld(t, scheduler.Options{Policy: queue.Priority}, draw(t))
		for _, group := range w.tree.Groups() {
			w.configure(scheduler.QueueChanged{
				Queue: group.Queue(), Rank: int32(rapid.IntRange(0, 1).Draw(t, "rank")),
				Policy:      rapid.SampledFrom([]*queue.Policy{queue.Priority, queue.Priority, queue.Block, queue.ShortestFirst}).Draw(t, "policy"),
				MaxPriority: scheduler.Cap{Set: rapid.Bool().Draw(t, "capped")},
				Learned:     &forecast.Learned{}, // nothing is learned from units that end
			})
		}
		competed := false
		for step := range rapid.IntRange(2, 8).Draw(t, "steps") {
			for i := range rapid.IntRange(0, 8).Draw(t, "submitted") {
				submitSmall(t, w, fmt.Sprintf("u%d-%d", step, i))
			}
			endSome(t, w)
			w.deliverAll()
			want := expectedReleases(w)
			w.think()
			if got := releases(w.sent); !slices.Equal(got, want) {
				t.Fatalf("step %d: released in the order %v, want %v", step, got, want)
			}
			competed = competed || len(want) > 1
			// Anything can happen to the units before the next step.
			w.after(2*scheduler.ReasonDelay + time.Duration(rapid.IntRange(0, 30_000).Draw(t, "ms"))*time.Millisecond)
			expectRest(t, w)
		}
		law.add(competed, w.allEvictions())
	})
}

// While a unit waits for what its group is owed, no other unit borrows more of that, in any run with groups that borrow
// from each other.
func TestPropertyBorrowingIsPausedForWhoIsOwed(t *testing.T) {
	law := judge(t, "nobody borrows what another waits for and is owed")
	rapid.Check(t, func(t *rapid.T) {
		draw, submit := drawFull, submitInFull
		switch rapid.IntRange(0, 3).Draw(t, "kind of tree") {
		case 1:
			draw, submit = drawBorrowers, submitSmall
		case 2:
			draw, submit = drawDeep, submitSmall
		}
		root := draw(t)
		w := newWorld(t, scheduler.Options{Policy: rapid.SampledFrom([]*queue.Policy{queue.Priority, queue.RoundRobin, queue.Block}).Draw(t, "policy")}, root)
		w.treeOpts.PauseBorrowing, w.judgesBorrowing = true, true
		w.plant(root)
		for step := range rapid.IntRange(2, 15).Draw(t, "steps") {
			for i := range rapid.IntRange(0, 4).Draw(t, "submitted") {
				submit(t, w, fmt.Sprintf("u%d-%d", step, i))
			}
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				endSome(t, w)
			case 1, 2: // so that not all waiting units get room
				if key := drawUnit(t, w, holds); key != "" {
					w.finish(key)
				}
			case 3: // a user deletes a waiting unit
				if key := drawUnit(t, w, waits); key != "" {
					w.delete(key)
				}
			case 4:
				if key := drawUnit(t, w, waits); key != "" {
					w.write(key, deactivate)
				}
			case 5: // a restart, with the writes in progress lost
				w.sent = nil // never lands
				w.restart()
			}
			if rapid.Bool().Draw(t, "all comes to rest") {
				w.after(2 * scheduler.ReasonDelay)
				expectRest(t, w)
			} else {
				w.hearAndThink()
			}
		}
		w.after(2 * scheduler.ReasonDelay)
		expectRest(t, w)
		law.add(w.tempted > 0, w.allEvictions())
	})
}

// checkBorrowing verifies that no release of a plan borrows what a waiting unit is owed. The oracle has what was
// charged before the plan, and charged are the units that it was charged for.
func (w *world) checkBorrowing(o *oracle.Tree, charged map[string]bool, plan scheduler.Plan) {
	w.t.Helper()
	released := releases(plan)
	for key := range w.units {
		if w.core.ChargeOf(key) != nil && !charged[key] && !slices.Contains(released, key) {
			return // it is released once another write has landed
		}
	}
	o.Reserving = false
	places := w.claimed(o, charged)
	for key, u := range w.units {
		if _, refusal := w.tree.Place(u.Namespace(), u.QuotaName); waits(u) && refusal == nil && !charged[key] && o.Refuses(w.pathOf(u), u.Demand) == "" && w.borrowsOf(o, u, places) != "" {
			w.tempted++
		}
	}
	for _, key := range released {
		if charged[key] {
			continue
		}
		u := w.units[key]
		if owed := w.borrowsOf(o, u, w.claimed(o, charged)); owed != "" {
			w.t.Fatalf("unit %s is released and borrows what %s waits for, whose group is owed it", key, owed)
		}
		charged[key] = true
		o.Charged = append(o.Charged, oracle.Charged{Path: w.pathOf(u), Charge: quota.Charge{Demand: u.Demand}})
	}
}

// borrowsOf returns the unit with a claim to a place where this unit would borrow; empty if there is none.
func (w *world) borrowsOf(o *oracle.Tree, u *scheduler.Unit, claims map[oracle.Place]string) (owed string) {
	for at := range claims {
		amount, _ := u.Demand.Requests.Get(w.names.ID(at.Resource))
		if claims[at] != u.Key && amount > 0 && slices.Contains(oracle.Chain(w.pathOf(u)), at.Path) &&
			o.Borrows(w.pathOf(u), at.Path, resources.Amount{ID: w.names.ID(at.Resource), Value: amount}) {
			return claims[at]
		}
	}
	return ""
}

// claimed returns the places where others must not borrow, with the unit that waits. It omits units that come after one
// that fits, because they are not tried yet, and units that would borrow, because nothing is reserved for them.
func (w *world) claimed(o *oracle.Tree, charged map[string]bool) map[oracle.Place]string {
	waiting := map[string][]*scheduler.Unit{}
	for key, u := range w.units {
		if _, refusal := w.tree.Place(u.Namespace(), u.QuotaName); waits(u) && u.Held == nil && refusal == nil && !charged[key] {
			waiting[w.pathOf(u)] = append(waiting[w.pathOf(u)], u)
		}
	}
	places := map[oracle.Place]string{}
	for path, units := range waiting {
		slices.SortFunc(units, func(a, b *scheduler.Unit) int {
			if w.before(a, b) {
				return -1
			}
			return 1
		})
		for _, u := range units {
			reason := o.Refuses(path, u.Demand)
			if isFinal(reason) {
				continue
			}
			if reason == "" {
				break
			}
			if !o.LacksFixed(path, u.Demand) && !w.borrowsAnything(o, u) {
				for _, place := range o.Claims(path, u.Demand) {
					places[place] = u.Key
				}
			}
			if w.policyOf(w.queueOf(u)).FrontOnly {
				break
			}
		}
	}
	return places
}

// borrowsAnything reports whether a unit would borrow anything that is limited.
func (w *world) borrowsAnything(o *oracle.Tree, u *scheduler.Unit) bool {
	path := w.pathOf(u)
	for _, at := range oracle.Chain(path) {
		for _, a := range u.Demand.Requests {
			if _, limited := o.Limit(at, w.names.Name(a.ID)); limited && a.Value > 0 && o.Borrows(path, at, a) {
				return true
			}
		}
	}
	return false
}

func submitSmall(t *rapid.T, w *world, name string) {
	namespace := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "namespace")
	list := cpu(fmt.Sprint(rapid.IntRange(1, 4).Draw(t, "cpu")))
	if rapid.IntRange(0, 2).Draw(t, "requests gpus") == 0 {
		list["gpu"] = fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "gpu"))
	}
	w.submit(namespace+"/"+name, list, priority(int32(rapid.IntRange(0, 1).Draw(t, "priority"))),
		maxTime(time.Duration(rapid.SampledFrom([]int{0, 0, 600, 3600, 86400}).Draw(t, "seconds it may run"))*time.Second),
		preemptible(rapid.IntRange(0, 4).Draw(t, "preemptible") > 0), quotaName(rapid.SampledFrom(w.quotas()).Draw(t, "quota")),
		func(u *scheduler.Unit) { u.Submitted = int64(rapid.IntRange(0, 5).Draw(t, "submitted at")) })
}

// submitInFull submits a unit that is small enough to be owed something in a tree of drawFull.
func submitInFull(t *rapid.T, w *world, name string) {
	w.submit(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace")+"/"+name, cpu(fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "cpu"))),
		priority(int32(rapid.IntRange(0, 1).Draw(t, "priority"))), preemptible(rapid.IntRange(0, 4).Draw(t, "preemptible") > 0))
}

func endSome(t *rapid.T, w *world) {
	for _, key := range slices.Sorted(maps.Keys(w.units)) {
		if holds(w.units[key]) && rapid.Bool().Draw(t, "ends") {
			w.finish(key)
		}
	}
}

func waits(u *scheduler.Unit) bool { return u.Phase == scheduler.Waiting }

// drawUnit draws one of the units that match; empty if none does.
func drawUnit(t *rapid.T, w *world, is func(*scheduler.Unit) bool) string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(w.units)) {
		if is(w.units[key]) {
			keys = append(keys, key)
		}
	}
	if keys == nil {
		return ""
	}
	return rapid.SampledFrom(keys).Draw(t, "unit")
}

// drawBorrowers draws a tree of groups that each have some guarantee and can borrow the rest. It has namespaces a to e
// and two or three levels; e may belong to an inner node.
func drawBorrowers(t *rapid.T) tree.Node {
	amounts := func(label string, least, most int) map[string]string {
		list := cpu(fmt.Sprint(rapid.IntRange(least, most).Draw(t, label+" cpu")))
		if rapid.Bool().Draw(t, label+" names gpu") {
			list["gpu"] = fmt.Sprint(rapid.IntRange(least, most).Draw(t, label+" gpu"))
		}
		return list
	}
	group := func(name string) tree.Node {
		n := leaf(name, nil, name)
		if rapid.IntRange(0, 4).Draw(t, name+" has min") > 0 {
			n.Min = quantities(amounts(name+" min", 0, 3))
		}
		if rapid.IntRange(0, 2).Draw(t, name+" has max") == 0 {
			n.Max = quantities(amounts(name+" max", 4, 8))
		}
		return n
	}
	inner := leaf("inner", nil)
	inner.Children = []tree.Node{group("a"), group("b")}
	if rapid.Bool().Draw(t, "inner is limited") {
		inner.Max = quantities(amounts("inner max", 6, 9))
	}
	if rapid.Bool().Draw(t, "inner is a group") {
		inner.Namespaces = []string{"e"}
		inner.Min = quantities(cpu("2"))
	}
	root := leaf("root", amounts("root max", 12, 14))
	root.Children = []tree.Node{inner, group("c"), group("d")}
	if _, _, err := tree.New(resources.NewNames(), root, tree.Options{}); err != nil {
		t.Fatalf("the test draws invalid trees: %v", err)
	}
	return root
}

// expectedReleases computes what the core must do now, by trying all units of all queues again for each release.
func expectedReleases(w *world) []string {
	o := w.oracle()
	released := map[string]bool{}
	var order []string
	for {
		best := w.winner(o, released)
		if best == nil {
			return order
		}
		group, _ := w.tree.Place(best.Namespace(), best.QuotaName)
		o.Charged = append(o.Charged, oracle.Charged{Path: group.Path(), Charge: quota.Charge{Demand: best.Demand}})
		released[best.Key] = true
		order = append(order, best.Key)
	}
}

// contender is a unit that a branch of a node enters.
type contender struct {
	unit   *scheduler.Unit
	group  string
	branch oracle.Branch
}

// winner returns the winner of the whole tree: each group enters its first unit that fits, and at each node, from
// below, one of the entries of its branches advances.
func (w *world) winner(o *oracle.Tree, released map[string]bool) *scheduler.Unit {
	contenders := map[string][]contender{}
	var all []contender
	for _, group := range w.tree.Groups() {
		if u := w.firstThatFits(o, group, released); u != nil {
			c := contender{u, group.Path(), oracle.Branch{Path: group.Path(), Own: true}}
			contenders[group.Path()] = append(contenders[group.Path()], c)
			all = append(all, c)
		}
	}
	usage := w.tree.Usage()
	for i := len(usage) - 1; i >= 0; i-- { // in tree order, a node comes before its descendants
		path := usage[i].Path
		at := contenders[path]
		if len(at) == 0 {
			continue
		}
		byJobs := len(at) > 1 && w.lacksOnlyJobs(o, path, all)
		best := at[0]
		for _, c := range at[1:] {
			if w.goesFirst(o, c, best, byJobs) {
				best = c
			}
		}
		if i == 0 {
			return best.unit
		}
		best.branch = oracle.Branch{Path: path}
		above := oracle.Chain(path)[1]
		contenders[above] = append(contenders[above], best)
	}
	return nil
}

// lacksOnlyJobs reports whether a limit on the number of units at or above the node is reached before the units that
// compete below it lack anything else.
func (w *world) lacksOnlyJobs(o *oracle.Tree, path string, all []contender) bool {
	jobs := int64(-1)
	for _, at := range oracle.Chain(path) {
		if room, limited := o.Room(at, quota.JobsResource); limited && (jobs < 0 || room.Int64() < jobs) {
			jobs = room.Int64()
		}
	}
	if jobs < 0 {
		return false
	}
	for _, c := range all {
		if !slices.Contains(oracle.Chain(c.group), path) {
			continue
		}
		for _, a := range c.unit.Demand.Requests {
			name := w.names.Name(a.ID)
			for _, at := range oracle.Chain(path) {
				if room, limited := o.Room(at, name); name != quota.JobsResource && limited && room.Int64() < (jobs+1)*a.Value {
					return false
				}
			}
		}
	}
	return true
}

func (w *world) goesFirst(o *oracle.Tree, a, b contender, byJobs bool) bool {
	if owed, other := o.IsOwed(a.group, a.unit.Demand, a.branch), o.IsOwed(b.group, b.unit.Demand, b.branch); owed != other && !byJobs {
		return owed
	}
	if rank, other := w.set[w.queueName(a.group)].Rank, w.set[w.queueName(b.group)].Rank; rank != other {
		return rank > other
	}
	if jobs, other := o.JobsOf(a.branch), o.JobsOf(b.branch); byJobs && jobs != other {
		return jobs < other
	}
	if by := o.ShareOf(a.branch, a.unit.Demand).Compare(o.ShareOf(b.branch, b.unit.Demand)); by != 0 && !byJobs {
		return by < 0
	}
	if a.unit.Submitted != b.unit.Submitted {
		return a.unit.Submitted < b.unit.Submitted
	}
	return a.unit.Key < b.unit.Key
}

func (w *world) queueName(path string) string {
	for _, g := range w.tree.Groups() {
		if g.Path() == path {
			return g.Queue()
		}
	}
	return ""
}

// firstThatFits returns the first unit of the group's queue that fits. With policy Block, only the front counts.
func (w *world) firstThatFits(o *oracle.Tree, group quota.Group, released map[string]bool) *scheduler.Unit {
	var first *scheduler.Unit
	for _, u := range w.units {
		g, refusal := w.tree.Place(u.Namespace(), u.QuotaName)
		if released[u.Key] || u.Phase != scheduler.Waiting || u.Held != nil || refusal != nil || g.Queue() != group.Queue() {
			continue
		}
		reason := o.Refuses(group.Path(), u.Demand)
		if reason != "" && (isFinal(reason) || !w.policyOf(w.set[group.Queue()]).FrontOnly) {
			continue
		}
		if first == nil || w.before(u, first) {
			first = u
		}
	}
	if first == nil || o.Refuses(group.Path(), first.Demand) != "" {
		return nil
	}
	return first
}
