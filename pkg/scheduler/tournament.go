package scheduler

import (
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// tournament selects the queue that tries next among those that have an item to try. At each node
// of the quota the branches below it compete, each with the item of the queue that won below it:
//
//   - an item that its group is owed goes before an item for which it would borrow,
//   - then the queue with the greater rank goes first,
//   - then the branch whose share, with the item, is smaller,
//   - then the older item.
//
// Priorities of jobs in different queues are never compared. A change of a queue, or of what is used,
// costs the logarithm of the number of siblings at each level.
type tournament struct {
	backend quota.Backend
	root    branch
	// inner are the branches of nodes that have branches below them. queues are the branches of
	// queues.
	inner, queues map[quota.NodeID]*branch
}

// branch is a queue, or a node with branches below it. If the group of such a node has a queue, the
// queue is one of the branches below it.
type branch struct {
	node  quota.NodeID
	above *branch
	// below are the branches that have an item to try; nil for the branch of a queue.
	below *queue.Heap[*branch]

	// queue is the queue of this branch, or the one that won below it. owed and share are of the item
	// that it tries.
	queue *queueState
	owed  bool
	share quota.Share
	place int

	// most is, by resource, at least what any item that is tried below requests.
	most map[resources.ID]int64
}

func newTournament(backend quota.Backend) *tournament {
	return &tournament{backend: backend, root: branch{below: newBranches()},
		inner: map[quota.NodeID]*branch{}, queues: map[quota.NodeID]*branch{}}
}

func newBranches() *queue.Heap[*branch] {
	return queue.NewHeap((*branch).before, func(b *branch) *int { return &b.place })
}

func (b *branch) before(other *branch) bool {
	if b.owed != other.owed {
		return b.owed
	}
	if b.queue.set.Rank != other.queue.set.Rank {
		return b.queue.set.Rank > other.queue.set.Rank
	}
	if by := b.share.Compare(other.share); by != 0 {
		return by < 0
	}
	return b.queue.tried.Older(other.queue.tried)
}

// enter adds the branches of new queues.
func (c *tournament) enter(queues ...*queueState) {
	for _, l := range queues {
		above := &c.root
		nodes := l.Group.Nodes()
		for i := len(nodes) - 1; i > 0; i-- {
			above = c.node(nodes[i], above)
		}
	}
	for _, l := range queues {
		nodes := l.Group.Nodes()
		above := &c.root
		if c.inner[nodes[0]] != nil {
			above = c.inner[nodes[0]]
		} else if len(nodes) > 1 {
			above = c.inner[nodes[1]]
		}
		// A queue without an item to try does not compete but has a branch.
		c.queues[nodes[0]] = &branch{node: nodes[0], above: above, queue: l}
	}
}

// leave removes the branch of a queue that has no item to try.
func (c *tournament) leave(l *queueState) {
	delete(c.queues, l.Group.Nodes()[0])
}

func (c *tournament) node(id quota.NodeID, above *branch) *branch {
	if c.inner[id] == nil {
		c.inner[id] = &branch{node: id, above: above, below: newBranches()}
	}
	return c.inner[id]
}

// changed processes that the queue tries another item.
func (c *tournament) changed(l *queueState) {
	b := c.queues[l.Group.Nodes()[0]]
	c.refresh(b)
	for b = b.above; b != &c.root; b = b.above {
		c.refresh(b)
	}
}

// used processes that the usage of the nodes of the group has changed.
func (c *tournament) used(group quota.Group) {
	for _, node := range group.Nodes() {
		if b := c.queues[node]; b != nil {
			c.refresh(b)
		}
		if b := c.inner[node]; b != nil {
			c.refresh(b)
		}
	}
}

// refresh moves a branch to its current position among its siblings.
func (c *tournament) refresh(b *branch) {
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
	demand := b.queue.tried.Shape().Demand
	b.raise(demand)
	b.owed = b.queue.Group.Owed(demand)
	b.share = c.backend.Share(b.node, demand)
	b.above.below.Set(b)
}

// raise updates most of the branch and its ancestors for an item with the demand.
func (b *branch) raise(demand quota.Demand) {
	for _, a := range demand.Requests {
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

// shrunk calls visit for the queues whose items may no longer fit after the vector was charged to
// the group: the queues of the nodes of the group, and the queues below these nodes whose items
// request more than is left.
func (c *tournament) shrunk(group quota.Group, charged resources.Vector, visit func(*queueState)) {
	for _, node := range group.Nodes() {
		if b := c.queues[node]; b != nil {
			visit(b.queue)
		}
		b := c.inner[node]
		if b == nil {
			continue
		}
		for _, a := range charged {
			most, known := b.most[a.ID]
			if !known {
				continue
			}
			if room := c.backend.Room(quota.Space{Node: node, Resource: a.ID}); room < most {
				b.most[a.ID] = b.findAbove(a.ID, room, visit)
			}
		}
	}
}

// findAbove calls visit for the queues below that request more than the room of a resource, and
// returns the most that the others request.
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
func (c *tournament) under(node quota.NodeID, visit func(*queueState)) {
	if b := c.inner[node]; b != nil {
		for _, l := range b.competing(nil) {
			visit(l)
		}
	}
}

// competing returns the queues that have an item to try. No decision may depend on the order.
func (c *tournament) competing() []*queueState { return c.root.competing(nil) }

func (b *branch) competing(found []*queueState) []*queueState {
	if b.below == nil {
		return append(found, b.queue)
	}
	for _, below := range b.below.All() {
		found = below.competing(found)
	}
	return found
}

// next returns the queue that tries next; nil if none has an item to try.
func (c *tournament) next() *queueState {
	if best, ok := c.root.below.Top(); ok {
		return best.queue
	}
	return nil
}
