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

	charges map[*quota.Charge]struct{}
	// charged is the sum of their totals, and unqueued the part used by pods that belong to no unit.
	charged, unqueued amounts
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
		quotas: map[string]*limits{}, charges: map[*quota.Charge]struct{}{}, charged: amounts{}, unqueued: amounts{}}
}

func (g *group) Path() string { return g.namespace }

func (g *group) Queue() string { return g.queue }

func (g *group) Nodes() []quota.NodeID { return g.nodes }

// Owed returns false because a ResourceQuota guarantees nothing.
func (g *group) Owed(quota.Demand, quota.Branch) bool { return false }

func (g *group) Charge(c *quota.Charge) {
	g.charges[c] = struct{}{}
	g.charged.add(c.Total())
	if c.Unqueued {
		g.unqueued.add(c.Pods)
	}
	g.enter(c)
}

func (g *group) Uncharge(c *quota.Charge) {
	delete(g.charges, c)
	g.charged.take(c.Total())
	if c.Unqueued {
		g.unqueued.take(c.Pods)
	}
	for _, s := range g.spaces {
		held, coming := g.backend.holds(s, c)
		s.held, s.coming = s.held.Sub(held), s.coming.Sub(coming)
	}
}

// Spaces visits all spaces.
func (g *group) Spaces(_ *quota.Charge, visit func(quota.Space)) {
	for _, s := range g.spaces {
		for _, bound := range bounds {
			visit(g.name(s, bound))
		}
	}
}

func (g *group) name(s *space, bound quota.Bound) quota.Space {
	return quota.Space{Node: g.nodes[0], Resource: s.id, Bound: bound}
}

// rebuild re-creates the spaces after the limits have changed.
func (g *group) rebuild() {
	g.spaces, g.byID = nil, map[resources.ID]*space{}
	for _, name := range slices.Sorted(maps.Keys(g.quotas)) {
		limits := g.quotas[name]
		for _, l := range limits.keys {
			s := &space{id: g.backend.names.ID(name + "/" + l.key), quota: limits, key: l.key, known: l.known,
				hard: l.hard, used: l.used, weighs: map[resources.ID]bool{}}
			g.spaces = append(g.spaces, s)
			g.byID[s.id] = s
		}
	}
	for c := range g.charges {
		g.enter(c)
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

// enter adds a charge to the sums.
func (g *group) enter(c *quota.Charge) {
	for _, s := range g.spaces {
		held, coming := g.backend.holds(s, c)
		s.held, s.coming = s.held.Add(held), s.coming.Add(coming)
	}
}

// holds returns how much of a space a charge holds, and how much of that its pods do not use yet.
func (b *Backend) holds(s *space, c *quota.Charge) (held, coming resources.Sum) {
	admitted, pods := b.sum(s, c.Demand.Requests), b.sum(s, c.Pods)
	if admitted.Compare(pods) <= 0 {
		return pods, resources.Sum{}
	}
	return admitted, admitted.Sub(pods)
}

// requested returns how much the demand requests in a space beyond what is counted already: count/pods is about objects,
// so pods that wait at a gate count before they are admitted.
func (b *Backend) requested(s *space, d quota.Demand) resources.Sum {
	if d.PodsExist && s.known == keyCountPods {
		return resources.Sum{}
	}
	return b.sum(s, d.Requests)
}

// sum returns how much the vector requests in a space.
func (b *Backend) sum(s *space, v resources.Vector) (sum resources.Sum) {
	for _, a := range v {
		if b.weighs(s, a.ID) {
			sum = sum.Plus(a.Value)
		}
	}
	return sum
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

// room returns how much can still be requested in a space, both by observation and by the status of the quota.
func (s *space) room() int64 {
	return min(s.held.Below(s.hard), s.coming.Plus(s.used).Below(s.hard))
}

// bounds are the bounds of each space.
var bounds = [...]quota.Bound{quota.Max, quota.Observed}

// boundOf returns which room of a space the demand needs.
func boundOf(d quota.Demand) quota.Bound {
	if d.PodsExist {
		return quota.Observed
	}
	return quota.Max
}

// roomIn returns how much can still be requested in a space by observation and, unless bound is Observed, by the
// status.
func (s *space) roomIn(bound quota.Bound) int64 {
	if bound == quota.Observed {
		return s.held.Below(s.hard)
	}
	return s.room()
}

// freeing reports the spaces in which the change has freed room.
func (g *group) freeing(change func()) quota.Effect {
	before := make([][len(bounds)]int64, len(g.spaces))
	for i, s := range g.spaces {
		for j, bound := range bounds {
			before[i][j] = s.roomIn(bound)
		}
	}
	change()
	var effect quota.Effect
	for i, s := range g.spaces {
		for j, bound := range bounds {
			if s.roomIn(bound) > before[i][j] {
				effect.Freed = append(effect.Freed, g.name(s, bound))
			}
		}
	}
	return effect
}
