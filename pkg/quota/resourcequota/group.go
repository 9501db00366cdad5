package resourcequota

import (
	"maps"
	"slices"

	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// group is a namespace.
type group struct {
	backend   *Backend
	namespace string
	queue     string
	nodes     []quota.NodeID
	// quotas are by name. spaces are their spaces, ordered by quota and key.
	quotas map[string]*limits
	spaces []*space
	byID   map[resources.ID]*space

	owners map[string]*owner
	// nameless is the holder of units that name no owner.
	nameless *owner
	// charged is the sum of what units are charged. other is what pods without a holder use.
	charged, other amounts
}

// space is a key that a quota limits.
type space struct {
	id    resources.ID
	quota *limits
	key   string
	known string
	hard  int64
	// used is what the status of the quota reports.
	used         int64
	held, coming resources.Sum
	// weighs caches which dimensions count in the space.
	weighs map[resources.ID]bool
}

func newGroup(b *Backend, namespace string, node quota.NodeID) *group {
	return &group{backend: b, namespace: namespace, queue: quota.QueueName(namespace), nodes: []quota.NodeID{node},
		quotas: map[string]*limits{}, owners: map[string]*owner{},
		nameless: &owner{charged: amounts{}, pods: amounts{}}, charged: amounts{}, other: amounts{}}
}

func (g *group) Path() string { return g.namespace }

func (g *group) Queue() string { return g.queue }

func (g *group) Nodes() []quota.NodeID { return g.nodes }

// Owed returns false because a ResourceQuota guarantees nothing.
func (g *group) Owed(quota.Demand) bool { return false }

func (g *group) Charge(uid string, d quota.Demand) {
	g.charged.add(d.Requests)
	o := g.holder(uid)
	g.holding(o, func() {
		o.units++
		o.charged.add(d.Requests)
	})
	if o.units == 1 && o != g.nameless {
		g.recount(o, 0)
	}
}

func (g *group) Release(uid string, d quota.Demand) {
	g.charged.take(d.Requests)
	o := g.holder(uid)
	g.holding(o, func() {
		o.units--
		o.charged.take(d.Requests)
	})
	if o.units == 0 && o != g.nameless {
		g.recount(o, 0)
		g.drop(o)
	}
}

// holder returns the owner with the UID, prepared to be charged.
func (g *group) holder(uid string) *owner {
	if uid == "" {
		return g.nameless
	}
	o := g.owner(uid)
	if o.charged == nil {
		o.charged, o.pods = amounts{}, amounts{}
	}
	return o
}

// Spaces visits all spaces, whatever the demand requests: when a demand is uncharged, its pods count
// for another holder or for none.
func (g *group) Spaces(_ quota.Demand, visit func(quota.Space)) {
	for _, s := range g.spaces {
		visit(g.name(s))
	}
}

func (g *group) name(s *space) quota.Space {
	return quota.Space{Node: g.nodes[0], Resource: s.id, Bound: quota.Max}
}

// rebuild creates the spaces again after the limits have changed.
func (g *group) rebuild() {
	g.spaces, g.byID = nil, map[resources.ID]*space{}
	for _, name := range slices.Sorted(maps.Keys(g.quotas)) {
		limits := g.quotas[name]
		for _, l := range limits.keys {
			s := &space{id: g.backend.names.ID(name + "/" + l.key), quota: limits, key: l.key, known: l.known,
				hard: l.hard, used: l.used, weighs: map[resources.ID]bool{}}
			g.spaces = append(g.spaces, s)
			g.byID[s.id] = s
			s.held = g.backend.sum(s, g.other)
		}
	}
	g.enter(g.nameless)
	for _, o := range g.owners {
		g.enter(o)
	}
}

// setUsed applies the usage that the status of a quota reports.
func (g *group) setUsed(name string, now *limits) {
	g.quotas[name].keys = now.keys
	i := 0
	for _, s := range g.spaces {
		if s.quota.name == name {
			s.used = now.keys[i].used
			i++
		}
	}
}

// holding changes what a holder is charged or what its pods use.
func (g *group) holding(o *owner, change func()) {
	for _, s := range g.spaces {
		held, coming := g.backend.holds(s, o)
		s.held, s.coming = s.held.Sub(held), s.coming.Sub(coming)
	}
	change()
	g.enter(o)
}

// enter adds a holder to the sums.
func (g *group) enter(o *owner) {
	for _, s := range g.spaces {
		held, coming := g.backend.holds(s, o)
		s.held, s.coming = s.held.Add(held), s.coming.Add(coming)
	}
}

// others changes what pods without a holder use.
func (g *group) others(before, now resources.Vector) {
	g.other.take(before)
	g.other.add(now)
	for _, s := range g.spaces {
		s.held = s.held.Minus(g.backend.requested(s, before)).Plus(g.backend.requested(s, now))
	}
}

// holds returns how much of a space a holder holds, and how much of that its pods do not use yet.
func (b *Backend) holds(s *space, o *owner) (held, coming resources.Sum) {
	charged, pods := b.sum(s, o.charged), b.sum(s, o.pods)
	if charged.Compare(pods) <= 0 {
		return pods, resources.Sum{}
	}
	return charged, charged.Sub(pods)
}

func (b *Backend) sum(s *space, of amounts) (sum resources.Sum) {
	for id, amount := range of {
		if b.weighs(s, id) {
			sum = sum.Add(amount)
		}
	}
	return sum
}

// requested returns how much the vector requests in a space. It fits an int64 because no vector has
// more than MaxRequest of anything and there are few classes.
func (b *Backend) requested(s *space, v resources.Vector) int64 {
	var sum resources.Sum
	for _, a := range v {
		if b.weighs(s, a.ID) {
			sum = sum.Plus(a.Value)
		}
	}
	return sum.Clamp()
}

// weighs reports whether the dimension counts in the space.
func (b *Backend) weighs(s *space, id resources.ID) bool {
	weighs, cached := s.weighs[id]
	if !cached {
		d, is := b.dimensions[id]
		weighs = is && d.unset == "" && d.key == s.known && s.quota.matches(d.class)
		s.weighs[id] = weighs
	}
	return weighs
}

// room returns how much may still be requested in a space, both by observation and by the status of
// the quota.
func (s *space) room() int64 {
	return min(s.held.Below(s.hard), s.coming.Plus(s.used).Below(s.hard))
}

// freeing reports in which spaces the change has freed room.
func (g *group) freeing(change func()) quota.Effect {
	before := make([]int64, len(g.spaces))
	for i, s := range g.spaces {
		before[i] = s.room()
	}
	change()
	var effect quota.Effect
	for i, s := range g.spaces {
		if s.room() > before[i] {
			effect.Freed = append(effect.Freed, g.name(s))
		}
	}
	return effect
}
