package scheduler

import (
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// tournament finds the line that is to try next among those that have something to
// try. At each node of the quota the branches below it compete, each for the item of
// the line that won below it:
//
//   - an item that its group is owed goes before one for which it would borrow,
//   - then the greater rank of the line goes first,
//   - then the branch that would use the smaller share of its due, with the item,
//   - then the older item.
//
// Priorities of jobs in different lines are never compared. A change of a line, or of
// what is used, costs the logarithm of the number of siblings at each level.
type tournament struct {
	backend quota.Backend
	root    branch
	// inner are the nodes with branches below them, lines those of groups.
	inner, lines map[quota.NodeID]*branch
}

// branch is a line, or a node with branches below it. The line of a node that has
// branches below it is one of these.
type branch struct {
	node  quota.NodeID
	above *branch
	// below are the branches that have something to try; nil for a line's branch.
	below *queue.Heap[*branch]

	// line that is here, or won below; owed and share are of the item that it tries.
	queue *queueState
	owed  bool
	share quota.Share
	place int

	// most is, by resource, no less than what any item that is tried below asks for.
	most []int64
}

func newTournament(backend quota.Backend) *tournament {
	return &tournament{backend: backend, root: branch{below: newBranches()},
		inner: map[quota.NodeID]*branch{}, lines: map[quota.NodeID]*branch{}}
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

// enter makes places for lines whose groups are new.
func (c *tournament) enter(lines ...*queueState) {
	for _, l := range lines {
		above := &c.root
		nodes := l.Group.Nodes()
		for i := len(nodes) - 1; i > 0; i-- {
			above = c.node(nodes[i], above)
		}
	}
	for _, l := range lines {
		nodes := l.Group.Nodes()
		above := &c.root
		if c.inner[nodes[0]] != nil {
			above = c.inner[nodes[0]]
		} else if len(nodes) > 1 {
			above = c.inner[nodes[1]]
		}
		// A line that has nothing to try does not compete, but has its place.
		c.lines[nodes[0]] = &branch{node: nodes[0], above: above, queue: l}
	}
}

// leave removes the place of a line that has nothing to try.
func (c *tournament) leave(l *queueState) {
	delete(c.lines, l.Group.Nodes()[0])
}

func (c *tournament) node(id quota.NodeID, above *branch) *branch {
	if c.inner[id] == nil {
		c.inner[id] = &branch{node: id, above: above, below: newBranches()}
	}
	return c.inner[id]
}

// changed takes in that the line has something else to try.
func (c *tournament) changed(l *queueState) {
	b := c.lines[l.Group.Nodes()[0]]
	c.refresh(b)
	for b = b.above; b != &c.root; b = b.above {
		c.refresh(b)
	}
}

// used takes in that something else is in use at the group's nodes.
func (c *tournament) used(group quota.Group) {
	for _, node := range group.Nodes() {
		if b := c.lines[node]; b != nil {
			c.refresh(b)
		}
		if b := c.inner[node]; b != nil {
			c.refresh(b)
		}
	}
}

// refresh puts a branch where it belongs among its siblings now.
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

// raise has most hold for an item that asks for the demand, at and above the branch.
func (b *branch) raise(demand quota.Demand) {
	for _, a := range demand.Requests {
		for up := b; up != nil; up = up.above {
			for int(a.ID) >= len(up.most) {
				up.most = append(up.most, 0)
			}
			up.most[a.ID] = max(up.most[a.ID], a.Value)
		}
	}
}

// shrunk reports the lines whose items may not fit any more, since the demand was
// charged to the group: those of the group's nodes, and those below these that ask
// for more than is left.
func (c *tournament) shrunk(group quota.Group, demand quota.Demand, tell func(*queueState)) {
	for _, node := range group.Nodes() {
		if b := c.lines[node]; b != nil {
			tell(b.queue)
		}
		b := c.inner[node]
		if b == nil {
			continue
		}
		for _, a := range demand.Requests {
			if int(a.ID) >= len(b.most) {
				continue
			}
			room := c.backend.Room(quota.Space{Node: node, Resource: a.ID})
			if room < b.most[a.ID] {
				b.most[a.ID] = b.findAbove(a.ID, room, tell)
			}
		}
	}
}

// findAbove reports the lines below that ask for more than the room of a resource,
// and returns the most that the others ask for.
func (b *branch) findAbove(resource resources.ID, room int64, tell func(*queueState)) (most int64) {
	if b.below == nil {
		asked, _ := b.queue.tried.Shape().Demand.Requests.Get(resource)
		if asked <= room {
			return asked
		}
		tell(b.queue)
		return 0
	}
	for _, below := range b.below.All() {
		most = max(most, below.findAbove(resource, room, tell))
	}
	return most
}

// under reports the lines below the node that have something to try.
func (c *tournament) under(node quota.NodeID, tell func(*queueState)) {
	if b := c.inner[node]; b != nil {
		for _, l := range b.competing(nil) {
			tell(l)
		}
	}
}

// competing lists the lines that have something to try, in no order that a decision
// may depend on.
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

// next is the line that is to try, nil when none has anything to try.
func (c *tournament) next() *queueState {
	if best, ok := c.root.below.Top(); ok {
		return best.queue
	}
	return nil
}
