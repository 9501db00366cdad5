package preemption

import (
	"cmp"
	"math"
	"slices"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// branches finds the candidates of other groups to reclaim room from. It holds the part of the quota that candidates
// are charged to: each node is a branch with the nodes and the group below it.
//
// For the resource that is lacking at a node of the claimant, heaps hold the branches that use more than their
// guarantee of it, furthest above first. Taking a candidate changes only the branches that it is charged to.
type branches struct {
	backend quota.Backend
	// nodes are the branches of nodes. groups are those of the groups themselves, by the path of the group.
	nodes  map[quota.NodeID]*branch
	groups map[string]*branch
	// chain are the nodes of the claimant, from its own to the root. Its own group is not a branch.
	chain []quota.NodeID
	// sought is the lack that the heaps are ordered for, unless stale. by is the order within a group.
	sought lack
	stale  bool
	by     order
	// cut is whether a branch got within its guarantee while it still had candidates.
	cut bool
	// reclaimed are the branches at and below the node of the lack that do not contain the claimant.
	reclaimed *queue.Heap[*branch]
	isTaken   map[*Candidate]bool
}

// order is the order in which the candidates of a group are taken.
type order bool

const (
	inOrder      order = false
	largestFirst order = true
)

// branch is a node, or the group of a node.
type branch struct {
	quota.Branch
	above *branch
	below []*branch
	// candidates are those of a group, in the order in which they are taken. Candidates before next are taken, or do
	// not use the lacking resource.
	candidates []*Candidate
	next       int

	// share is the branch's share of the lacking resource. heap holds the branches below that use more than their
	// guarantee of it and have a candidate. in is the heap that can hold this branch.
	share quota.Share
	heap  *queue.Heap[*branch]
	in    *queue.Heap[*branch]
	// order decides between equal shares. It is unique.
	order int
	place int32
}

func newHeap() *queue.Heap[*branch] {
	return queue.NewHeap(func(a, b *branch) bool {
		if by := b.share.Compare(a.share); by != 0 {
			return by < 0
		}
		return a.order < b.order
	}, func(b *branch) *int32 { return &b.place })
}

// newBranches sorts the candidates into branches. The order of candidates with equal keys does not matter.
func newBranches(backend quota.Backend, claimant quota.Group, candidates []*Candidate) *branches {
	f := &branches{backend: backend, nodes: map[quota.NodeID]*branch{}, groups: map[string]*branch{}, chain: claimant.Nodes(), stale: true}
	for _, c := range candidates {
		b := f.groups[c.Group.Path()]
		if b == nil {
			b = f.addGroup(c.Group)
		}
		b.candidates = append(b.candidates, c)
	}
	f.sort()
	return f
}

// sort puts the candidates of each group in order.
func (f *branches) sort() {
	for _, b := range f.groups {
		slices.SortFunc(b.candidates, (*Candidate).Compare)
	}
}

// addGroup adds the branch of a group and those of its nodes.
func (f *branches) addGroup(g quota.Group) *branch {
	var above *branch
	nodes := g.Nodes()
	for i := len(nodes) - 1; i >= 0; i-- {
		b := f.nodes[nodes[i]]
		if b == nil {
			b = &branch{Branch: quota.Branch{Node: nodes[i]}, above: above, heap: newHeap(), order: 2*int(nodes[i]) + 1}
			f.nodes[nodes[i]] = b
			if above != nil {
				above.below = append(above.below, b)
			}
		}
		above = b
	}
	b := &branch{Branch: quota.Branch{Node: nodes[0], Own: true}, above: above, order: 2 * int(nodes[0])}
	above.below = append(above.below, b)
	f.groups[g.Path()] = b
	return b
}

// isGuaranteed reports whether the guarantee of the node names the resource.
func isGuaranteed(backend quota.Backend, node quota.NodeID, r resources.ID) bool {
	return backend.Room(quota.Space{Node: node, Resource: r, Bound: quota.Min}) != math.MaxInt64
}

// isAbove reports whether the branch uses more than its guarantee of the resource. A branch without a guarantee of it
// is always above.
func (b *branch) isAbove(backend quota.Backend, r resources.ID) bool {
	bound := quota.Min
	if b.Own {
		bound = quota.OwnMin
	}
	room := backend.Room(quota.Space{Node: b.Node, Resource: r, Bound: bound})
	return room < 0 || room == math.MaxInt64
}

// forget starts over: nothing is taken, and each group offers its candidates in the given order.
func (f *branches) forget(by order) {
	if f.by == largestFirst {
		f.sort()
	}
	f.isTaken, f.stale, f.by, f.cut = map[*Candidate]bool{}, true, by, false
}

// next returns the candidate to take for the lack; nil if there is none.
func (f *branches) next(l lack) *Candidate {
	if f.stale || l != f.sought {
		f.seek(l)
	}
	top, ok := f.reclaimed.Top()
	if !ok {
		return nil
	}
	for top.heap != nil {
		top, _ = top.heap.Top() // a branch without candidates is not in a heap
	}
	return top.candidates[top.next]
}

// taken records that a candidate was taken.
func (f *branches) taken(c *Candidate) {
	f.isTaken[c] = true
	for b := f.groups[c.Group.Path()]; b != nil && b.in != nil; b = b.above {
		f.update(b)
	}
}

// seek orders the branches for the lack.
func (f *branches) seek(l lack) {
	f.sought, f.stale = l, false
	f.reclaimed = newHeap()
	for _, b := range f.nodes {
		b.heap, b.in, b.place = newHeap(), nil, 0
	}
	for _, b := range f.groups {
		b.in, b.place, b.next = nil, 0, 0
		if f.by == largestFirst {
			slices.SortFunc(b.candidates, func(a, b *Candidate) int {
				return cmp.Or(cmp.Compare(b.uses(l.resource), a.uses(l.resource)), a.Compare(b))
			})
		}
	}
	for i, node := range f.chain[:l.at+1] {
		b := f.nodes[node]
		if b == nil {
			continue
		}
		for _, below := range b.below {
			if i == 0 || below.Node != f.chain[i-1] {
				f.enter(below, f.reclaimed)
			}
		}
	}
}

// enter puts a branch and those below it into their heaps.
func (f *branches) enter(b *branch, in *queue.Heap[*branch]) {
	for _, below := range b.below {
		f.enter(below, b.heap)
	}
	b.in = in
	f.update(b)
}

// update moves a branch to its position in its heap, or removes it if nothing can be taken from it.
func (f *branches) update(b *branch) {
	r := f.sought.resource
	for b.heap == nil && b.next < len(b.candidates) {
		c := b.candidates[b.next]
		if c.uses(r) > 0 && !f.isTaken[c] {
			break
		}
		b.next++
	}
	empty := b.heap == nil && b.next == len(b.candidates) || b.heap != nil && b.heap.Len() == 0
	if empty || !b.isAbove(f.backend, r) {
		f.cut = f.cut || !empty && len(f.isTaken) > 0
		b.in.Remove(b)
		return
	}
	b.share = f.backend.Share(b.Branch, quota.Demand{Requests: resources.Vector{{ID: r, Value: 1}}})
	b.in.Set(b)
}
