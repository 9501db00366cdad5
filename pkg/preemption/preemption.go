package preemption

import (
	"cmp"
	"slices"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Candidate is a unit that holds quota and can be evicted.
type Candidate struct {
	// Key identifies the unit. Every order ends with it.
	Key string
	// Priority and Started, in microseconds since 1970, order the candidates of a group.
	Priority int32
	Started  int64
	// Exceeding is whether the unit uses more than it was admitted with.
	Exceeding bool
	Group     quota.Group
	Charge    *quota.Charge
}

// Compare orders candidates as they are taken: units that use more than they were admitted with, then lower priority,
// then later start.
func (c *Candidate) Compare(other *Candidate) int {
	if c.Exceeding != other.Exceeding {
		if c.Exceeding {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(c.Priority, other.Priority), cmp.Compare(other.Started, c.Started), cmp.Compare(c.Key, other.Key))
}

// uses returns how much of the resource the candidate is charged for, in base units.
func (c *Candidate) uses(r resources.ID) int64 {
	used, _ := c.Charge.Total().Get(r)
	return used
}

// Claim is what a claimant is due.
type Claim struct {
	Group  quota.Group
	Demand quota.Demand
	// Preempts reports whether a candidate in the claimant's queue can be evicted for it.
	Preempts func(*Candidate) bool
	// Reclaims is whether candidates of other groups can be evicted for it.
	Reclaims bool
}

// Victim is a candidate that is evicted.
type Victim struct {
	*Candidate
	// Reclaimed is whether the victim belongs to a group other than the claimant's.
	Reclaimed bool
}

// Choose returns the victims for the claim; none if it fits without any, or if it cannot be made to fit.
// Candidates are those of all groups.
func Choose(backend quota.Planner, claim Claim, candidates []*Candidate) []Victim {
	s := newSearch(backend, claim, candidates)
	defer s.restore()
	if s.fits() {
		return nil
	}
	for _, succeeds := range []func() bool{s.reclaim, s.preempt, s.preemptAndReclaim} {
		if succeeds() {
			return slices.Clone(s.victims)
		}
		s.restore()
	}
	return nil
}

// search is one choice of victims. Taken victims are uncharged in the backend.
type search struct {
	backend quota.Planner
	claim   Claim
	// requests are those of the claimant, sorted by resource name, because IDs change at a restart.
	requests resources.Vector
	// nodes are the nodes of the claimant's group, from its own to the root.
	nodes   []quota.NodeID
	own     []*Candidate
	others  *branches
	victims []Victim
	// unused is how much of the group's guarantee was unused before any victim was taken, for the resources that
	// candidates of the group use.
	unused map[resources.ID]int64
}

func newSearch(backend quota.Planner, claim Claim, candidates []*Candidate) *search {
	s := &search{backend: backend, claim: claim, requests: slices.Clone(claim.Demand.Requests), nodes: claim.Group.Nodes()}
	slices.SortFunc(s.requests, func(a, b resources.Amount) int {
		return cmp.Compare(backend.ResourceName(a.ID), backend.ResourceName(b.ID))
	})
	var others []*Candidate
	for _, c := range candidates {
		if c.Group.Path() == claim.Group.Path() {
			s.own = append(s.own, c)
		} else {
			others = append(others, c)
		}
	}
	slices.SortFunc(s.own, (*Candidate).Compare)
	s.unused = map[resources.ID]int64{}
	for _, c := range s.own {
		for _, a := range c.Charge.Total() {
			if isGuaranteed(backend, s.nodes[0], a.ID) {
				s.unused[a.ID] = max(s.room(a.ID), 0)
			}
		}
	}
	if claim.Reclaims {
		s.others = newBranches(backend, claim.Group, others)
	}
	return s
}

func (s *search) fits() bool { return s.claim.Group.Fits(s.claim.Demand) == nil }

func (s *search) take(v Victim) {
	v.Group.Uncharge(v.Charge)
	s.victims = append(s.victims, v)
}

// reclaim takes units of other groups until the claimant fits.
func (s *search) reclaim() bool {
	if !s.mayReclaim() {
		return false
	}
	own := len(s.victims)
	succeeds := s.takeOthers(inOrder)
	if !succeeds && s.others.cut {
		s.restoreAfter(own)
		succeeds = s.takeOthers(largestFirst)
	}
	if !succeeds {
		return false
	}
	s.spare(func(v Victim) bool { return v.Reclaimed }, s.fits)
	return true
}

// takeOthers takes units of other groups until the claimant lacks nothing. It looks at everything that is lacking: a
// unit that has borrowed one resource may also use another one that no other victim can free.
func (s *search) takeOthers(by order) bool {
	s.others.forget(by)
	for lacks := s.lacks(); len(lacks) > 0; lacks = s.lacks() {
		c := s.nextOf(lacks)
		if c == nil {
			return false
		}
		s.take(Victim{Candidate: c, Reclaimed: true})
		s.others.taken(c)
	}
	return s.fits()
}

// nextOf returns the candidate to take for the first lack that has one; nil if none has.
func (s *search) nextOf(lacks []lack) *Candidate {
	for _, l := range lacks {
		if c := s.others.next(l); c != nil {
			return c
		}
	}
	return nil
}

// mayReclaim reports whether the claimant stays within the guarantee of its group, and lacks only resources that the
// guarantee names.
func (s *search) mayReclaim() bool {
	if s.others == nil || !s.isOwed() {
		return false
	}
	return !slices.ContainsFunc(s.lacks(), func(l lack) bool { return !isGuaranteed(s.backend, s.nodes[0], l.resource) })
}

// preempt takes units in the claimant's queue until it fits.
func (s *search) preempt() bool {
	lawful := func() bool { return s.fits() && s.keepsGuarantee() }
	if !s.takeOwn(lawful) {
		return false
	}
	s.spare(func(Victim) bool { return true }, lawful)
	return true
}

// keepsGuarantee reports whether the group uses as much of its guarantee with the claimant as it did with the
// victims, or is owed all that the claimant requests.
func (s *search) keepsGuarantee() bool {
	if s.isOwed() && s.isAllGuaranteed() {
		return true
	}
	for r, before := range s.unused {
		request, _ := s.claim.Demand.Requests.Get(r)
		if max(s.room(r)-request, 0) > before {
			return false
		}
	}
	return true
}

// isAllGuaranteed reports whether the guarantee of the group names everything that the claimant requests.
func (s *search) isAllGuaranteed() bool {
	limiter, limits := s.backend.(quota.JobLimiter)
	return !slices.ContainsFunc(s.claim.Demand.Requests, func(a resources.Amount) bool {
		isWork := !limits || a.ID != limiter.JobsID()
		return a.Value > 0 && isWork && !isGuaranteed(s.backend, s.nodes[0], a.ID)
	})
}

// room returns how much of the guarantee of the group is left.
func (s *search) room(r resources.ID) int64 {
	return s.backend.Room(quota.Space{Node: s.nodes[0], Resource: r, Bound: quota.Min})
}

// isOwed reports whether the claimant stays within the guarantee of its group.
func (s *search) isOwed() bool {
	return s.claim.Group.Owed(s.claim.Demand, quota.Branch{Node: s.nodes[0]})
}

// preemptAndReclaim takes units in the claimant's queue until its group is owed the rest, and reclaims the rest.
func (s *search) preemptAndReclaim() bool {
	lawful := func() bool { return s.mayReclaim() && s.keepsGuarantee() }
	if s.others == nil || !s.takeOwn(lawful) {
		return false
	}
	s.spare(func(Victim) bool { return true }, lawful)
	return s.reclaim()
}

// takeOwn takes units in the claimant's queue until there are enough. If the group would use less of its guarantee
// without those in front, it starts over and passes over each unit without which that is so.
func (s *search) takeOwn(enough func() bool) bool {
	for _, passesOver := range []bool{false, true} {
		for _, c := range s.own {
			if s.claim.Preempts == nil || !s.claim.Preempts(c) || !s.helps(c) {
				continue
			}
			s.take(Victim{Candidate: c})
			if enough() {
				return true
			}
			if passesOver && !s.keepsGuarantee() {
				s.restoreAfter(len(s.victims) - 1)
			}
		}
		if s.keepsGuarantee() {
			break
		}
		s.restore()
	}
	return false
}

// restore charges all victims again.
func (s *search) restore() { s.restoreAfter(0) }

// restoreAfter charges the victims after the first n again.
func (s *search) restoreAfter(n int) {
	for _, v := range s.victims[n:] {
		v.Group.Charge(v.Charge)
	}
	s.victims = s.victims[:n]
}

// helps reports whether the candidate uses something that the claimant lacks.
func (s *search) helps(c *Candidate) bool {
	return slices.ContainsFunc(s.lacks(), func(l lack) bool {
		return c.uses(l.resource) > 0 && slices.Contains(c.Group.Nodes(), l.node)
	})
}

// lack is a resource that the claimant lacks room for, at the node with this index in its chain.
type lack struct {
	at       int
	node     quota.NodeID
	resource resources.ID
}

// lacks returns what the claimant lacks, from its own node to the root, then by resource name.
func (s *search) lacks() (lacks []lack) {
	for at, node := range s.nodes {
		for _, a := range s.requests {
			if a.Value > s.backend.Room(quota.Space{Node: node, Resource: a.ID}) {
				lacks = append(lacks, lack{at, node, a.ID})
			}
		}
	}
	return lacks
}

// spare drops the victims without which there is still enough, starting with the one that Compare orders last.
func (s *search) spare(of func(Victim) bool, enough func() bool) {
	order := slices.DeleteFunc(slices.Clone(s.victims), func(v Victim) bool { return !of(v) })
	slices.SortFunc(order, func(a, b Victim) int { return b.Compare(a.Candidate) })
	spared := map[*Candidate]bool{}
	for _, v := range order {
		v.Group.Charge(v.Charge)
		if spared[v.Candidate] = enough(); !spared[v.Candidate] {
			v.Group.Uncharge(v.Charge)
		}
	}
	s.victims = slices.DeleteFunc(s.victims, func(v Victim) bool { return spared[v.Candidate] })
}
