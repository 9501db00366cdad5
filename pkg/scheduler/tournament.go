package scheduler

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// tournament selects the queue that tries next among those that have an item to try. At each quota node, the branches
// below it compete. Each enters with the item of the queue that won below it:
//
//   - an item that its group is owed goes before an item that it would borrow for,
//   - then the queue with the higher rank goes first,
//   - then the branch whose share, with the item, is smaller,
//   - then the older item.
//
// If a limit on the number of jobs is reached before anything else is lacking, the branches compete for jobs: after the
// rank, the branch with fewer units that hold quota goes first.
//
// Priorities of jobs in different queues are never compared. A change of a queue or of usage costs the logarithm of
// the number of siblings at each level.
type tournament struct {
	backend quota.Backend
	// limiter is the backend if it limits the number of units; nil otherwise.
	limiter quota.JobLimiter
	root    branch
	// inner are the branches of nodes with branches below them. queues are the branches of queues.
	inner, queues map[quota.NodeID]*branch
	// only is the branch of the root if there is just one, so that it has no competitors; nil otherwise.
	only *branch
	// limited are the inner branches with a limit on the number of units at or above them, deepest first. stale is whether
	// competeForJobs must check them again.
	limited []*branch
	stale   bool
}

// branch is a queue, or a node with branches below it. If the group of such a node has a queue, the
// queue is one of the branches below it.
type branch struct {
	quota.Branch
	above *branch
	// below are the branches that have an item to try; nil for the branch of a queue.
	below *queue.Heap[*branch]

	// queue is the queue of this branch, or the one that won below it. owed and share belong to the item that it
	// tries.
	queue *queueState
	owed  bool
	share quota.Share
	// jobs is the number of units in the branch that hold quota, if that number is limited.
	jobs  int64
	place int32

	// byJobs is whether the branches below compete for jobs.
	byJobs bool

	// most is, by resource, an upper bound of the requests of items that were proved below.
	most map[resources.ID]int64
}

func newTournament(backend quota.Backend) *tournament {
	limiter, _ := backend.(quota.JobLimiter)
	return &tournament{backend: backend, limiter: limiter, root: branch{below: newBranches()},
		inner: map[quota.NodeID]*branch{}, queues: map[quota.NodeID]*branch{}}
}

func newBranches() *queue.Heap[*branch] {
	return queue.NewHeap((*branch).before, func(b *branch) *int32 { return &b.place })
}

func (b *branch) before(other *branch) bool {
	byJobs := b.above.byJobs
	if b.owed != other.owed && !byJobs {
		return b.owed
	}
	if b.queue.set.Rank != other.queue.set.Rank {
		return b.queue.set.Rank > other.queue.set.Rank
	}
	if byJobs && b.jobs != other.jobs {
		return b.jobs < other.jobs
	}
	if by := b.share.Compare(other.share); by != 0 && !byJobs {
		return by < 0
	}
	return b.queue.tried.Older(other.queue.tried)
}

// enter adds the branches of new queues.
func (t *tournament) enter(queues ...*queueState) {
	for _, q := range queues {
		above := &t.root
		nodes := q.Group.Nodes()
		for i := len(nodes) - 1; i > 0; i-- {
			above = t.node(nodes[i], above)
		}
	}
	for _, q := range queues {
		nodes := q.Group.Nodes()
		above := &t.root
		if t.inner[nodes[0]] != nil {
			above = t.inner[nodes[0]]
		} else if len(nodes) > 1 {
			above = t.inner[nodes[1]]
		}
		// A queue without an item to try has a branch but does not compete.
		q.branch = &branch{Branch: quota.Branch{Node: nodes[0], Own: t.inner[nodes[0]] != nil}, above: above, queue: q}
		t.queues[nodes[0]] = q.branch
	}
	t.findLimited()
	t.findOnly()
}

// findOnly updates only.
func (t *tournament) findOnly() {
	was := t.only
	t.only = t.onlyRoot()
	if was != nil && was != t.only {
		t.refresh(was) // it competes now
	}
}

// onlyRoot returns the branch of the root; nil if there are several roots.
func (t *tournament) onlyRoot() (only *branch) {
	for _, branches := range [...]map[quota.NodeID]*branch{t.inner, t.queues} {
		for _, b := range branches {
			switch {
			case b.above != &t.root:
			case only != nil:
				return nil
			default:
				only = b
			}
		}
	}
	return only
}

// findLimited updates limited.
func (t *tournament) findLimited() {
	t.limited = nil
	if t.limiter == nil {
		return
	}
	for _, b := range t.inner {
		if t.jobsRoom(b) < math.MaxInt64 {
			t.limited = append(t.limited, b)
		}
	}
	slices.SortFunc(t.limited, func(a, b *branch) int { return cmp.Compare(b.depth(), a.depth()) })
}

// jobsRoom returns how many more units can hold quota below the branch within the limits of the branch and its
// ancestors.
func (t *tournament) jobsRoom(b *branch) int64 {
	room := int64(math.MaxInt64)
	for ; b != &t.root; b = b.above {
		room = min(room, t.limiter.Room(quota.Space{Node: b.Node, Resource: t.limiter.JobsID()}))
	}
	return room
}

func (b *branch) depth() (depth int) {
	for ; b.above != nil; b = b.above {
		depth++
	}
	return depth
}

// competeForJobs updates byJobs of all branches. It takes time proportional to the number of limited branches.
func (t *tournament) competeForJobs() {
	if !t.stale || len(t.limited) == 0 {
		return
	}
	t.stale = false
	for _, b := range t.limited {
		jobs := t.jobsRoom(b)
		if jobs <= 0 || b.below.Len() < 2 || b.byJobs == t.lacksOnlyJobs(b, jobs) {
			continue
		}
		b.byJobs = !b.byJobs
		branches := slices.Clone(b.below.All())
		for _, below := range branches {
			b.below.Remove(below)
		}
		for _, below := range branches {
			b.below.Set(below)
		}
		for up := b; up != &t.root; up = up.above {
			t.refresh(up)
		}
	}
}

// lacksOnlyJobs reports whether only jobs would be lacking after the branch admitted as many units as its limit allows:
// whether there would still be room for one more unit with the largest requests.
func (t *tournament) lacksOnlyJobs(b *branch, jobs int64) bool {
	enough := func(id resources.ID, request int64) bool {
		if id == t.limiter.JobsID() {
			return true
		}
		for up := b; up != &t.root; up = up.above {
			if t.backend.Room(quota.Space{Node: up.Node, Resource: id})/(jobs+1) < request {
				return false
			}
		}
		return true
	}
	all := true
	for id, most := range b.most { // an upper bound
		all = all && enough(id, most)
	}
	if all {
		return true
	}
	for _, q := range b.competing(nil) {
		for _, a := range q.tried.Shape().Demand.Requests {
			if !enough(a.ID, a.Value) {
				return false
			}
		}
	}
	return true
}

// leave removes the branch of a queue that has no item to try.
func (t *tournament) leave(q *queueState) {
	delete(t.queues, q.Group.Nodes()[0])
}

func (t *tournament) node(id quota.NodeID, above *branch) *branch {
	if t.inner[id] == nil {
		t.inner[id] = &branch{Branch: quota.Branch{Node: id}, above: above, below: newBranches()}
	}
	return t.inner[id]
}

// changed updates the tournament after the queue changed the item that it tries.
func (t *tournament) changed(q *queueState) {
	t.stale = true
	b := q.branch
	t.refresh(b)
	for b = b.above; b != &t.root; b = b.above {
		t.refresh(b)
	}
}

// used updates the tournament after the usage of the group's nodes changed.
func (t *tournament) used(group quota.Group) {
	t.stale = true
	for _, node := range group.Nodes() {
		if b := t.queues[node]; b != nil {
			t.refresh(b)
		}
		if b := t.inner[node]; b != nil {
			t.refresh(b)
		}
	}
}

// refresh moves a branch to its current position among its siblings.
func (t *tournament) refresh(b *branch) {
	if b.below != nil {
		b.queue = nil
		if best, ok := b.below.Top(); ok {
			b.queue = best.queue
		}
	}
	if b.queue == nil || b.queue.tried == nil {
		b.above.below.Remove(b)
		return
	}
	if b != t.only {
		demand := b.queue.tried.Shape().Demand
		b.owed = b.queue.Group.Owed(demand, b.Branch)
		b.share = t.backend.Share(b.Branch, demand)
		if len(t.limited) > 0 {
			b.jobs = t.limiter.Jobs(b.Branch)
		}
	}
	b.above.below.Set(b)
}

// raise raises the upper bounds of the branch and its ancestors for the item that the queue tries, after it was proved.
func (b *branch) raise() {
	for _, a := range b.queue.tried.Shape().Demand.Requests {
		for up := b; up != nil; up = up.above {
			if most, known := up.most[a.ID]; !known || a.Value > most {
				if up.most == nil {
					up.most = map[resources.ID]int64{}
				}
				up.most[a.ID] = a.Value
			}
		}
	}
}

// shrunk calls visit for the queues whose items may no longer fit after the vector was charged to the group: the
// queues of the group's nodes, and the queues below these nodes whose items request more than is left.
func (t *tournament) shrunk(group quota.Group, charged resources.Vector, visit func(*queueState)) {
	for _, node := range group.Nodes() {
		if b := t.queues[node]; b != nil {
			visit(b.queue)
		}
		b := t.inner[node]
		if b == nil {
			continue
		}
		for _, a := range charged {
			most, known := b.most[a.ID]
			if !known {
				continue
			}
			if room := t.backend.Room(quota.Space{Node: node, Resource: a.ID}); room < most {
				b.most[a.ID] = b.findAbove(a.ID, room, visit)
			}
		}
	}
}

// findAbove calls visit for the queues below that request more of a resource than its room, and returns the largest
// request of the others.
func (b *branch) findAbove(resource resources.ID, room int64, visit func(*queueState)) (most int64) {
	if b.below == nil {
		requested, _ := b.queue.tried.Shape().Demand.Requests.Get(resource)
		if requested <= room {
			return requested
		}
		visit(b.queue)
		return 0
	}
	for _, below := range b.below.All() {
		most = max(most, below.findAbove(resource, room, visit))
	}
	return most
}

// under calls visit for the queues below the node that have an item to try.
func (t *tournament) under(node quota.NodeID, visit func(*queueState)) {
	if b := t.inner[node]; b != nil {
		for _, q := range b.competing(nil) {
			visit(q)
		}
	}
}

// competing returns the queues that have an item to try, in no particular order. No decision may depend on the order.
func (t *tournament) competing() []*queueState { return t.root.competing(nil) }

func (b *branch) competing(found []*queueState) []*queueState {
	if b.below == nil {
		return append(found, b.queue)
	}
	for _, below := range b.below.All() {
		found = below.competing(found)
	}
	return found
}

// check returns an error for each request of a proved item that exceeds an upper bound above it, so that shrunk could
// miss the item.
func (t *tournament) check() (broken []error) {
	for _, q := range t.competing() {
		for _, a := range q.tried.Shape().Demand.Requests {
			for up := q.branch.above; !q.unproven && up != &t.root; up = up.above {
				if up.most[a.ID] < a.Value {
					broken = append(broken, fmt.Errorf("queue %s: unit %s requests %d of resource %d, but at node %d the most is %d",
						q.name, q.tried.Key, a.Value, a.ID, up.Node, up.most[a.ID]))
				}
			}
		}
	}
	return broken
}

// next returns the queue that tries next; nil if none has an item to try.
func (t *tournament) next() *queueState {
	t.competeForJobs()
	if best, ok := t.root.below.Top(); ok {
		return best.queue
	}
	return nil
}
