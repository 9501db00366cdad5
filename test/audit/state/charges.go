package state

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/test/audit/facts"
)

// Charge is what one object has: the units that hold quota for it, and its pods that count.
type Charge struct {
	Unit    *Unit // the latest that was admitted; nil for pods outside of the queue
	Job     *Job  // nil if the log does not show it
	Holding []*Unit
	Pods    []*Pod
}

func (c *Charge) String() string {
	switch {
	case c.Job != nil:
		return c.Job.String()
	case c.Unit != nil:
		return c.Unit.String()
	}
	return "other pods"
}

// Holds reports whether a unit holds quota, as far as the log shows.
func (s *State) Holds(u *Unit) bool {
	j := s.JobOf(u)
	return s.holding[u] && !u.unclear && (j == nil || j.Over().IsZero())
}

// home returns the object that a pod counts for, with its unit; nil if it counts for none. A pod that was
// created after its unit was deleted counts only while the job is released.
func (s *State) home(p *Pod) (owner string, unit *Unit) {
	for _, uid := range s.chain(p.UID) {
		units := s.admitted[uid]
		if len(units) == 0 {
			continue
		}
		u := units[len(units)-1]
		for _, other := range units {
			if s.Holds(other) && !s.Holds(u) || other.Exists() && !u.Exists() {
				u = other
			}
		}
		j := s.Jobs[uid]
		released := j != nil && j.Over().IsZero() && !j.Facts.Suspended
		if u.Exists() || released || p.Created.IsZero() || p.Created.Before(u.Gone) {
			return uid, u
		}
	}
	return "", nil
}

// Charges groups the units that hold quota, and the pods that a function selects, by the object that they
// belong to. Pods outside of the queue are the last charge. A namespace of "" means all.
func (s *State) Charges(namespace string, counts func(*Pod) bool) []*Charge {
	byOwner := map[string]*Charge{}
	of := func(owner string, u *Unit) *Charge {
		c := byOwner[owner]
		if c == nil {
			c = &Charge{Unit: u, Job: s.Jobs[owner]}
			byOwner[owner] = c
		}
		return c
	}
	for u := range s.holding {
		if (namespace == "" || u.Namespace == namespace) && s.Holds(u) {
			c := of(cmp.Or(s.ownerOf(u), u.UID), u)
			c.Holding = append(c.Holding, u)
		}
	}
	others := &Charge{}
	for in, pods := range s.present {
		for p := range pods {
			if namespace != "" && in != namespace {
				break
			}
			if p.unclear || !counts(p) {
				continue
			}
			c := others
			if owner, u := s.home(p); u != nil {
				c = of(owner, u)
			}
			c.Pods = append(c.Pods, p)
		}
	}
	all := slices.SortedFunc(maps.Values(byOwner), func(a, b *Charge) int {
		return cmp.Or(cmp.Compare(a.String(), b.String()), cmp.Compare(a.Unit.UID, b.Unit.UID))
	})
	return append(all, others)
}

// Requesting selects the live pods whose requests are known.
func Requesting(p *Pod) bool { return p.Live() && !p.resized }

// Load returns what a pod counts in a ResourceQuota. One that has ended counts only as an object. Of one
// that was resized only the number is known.
func (p *Pod) Load() facts.Load {
	switch {
	case !p.Over.IsZero():
		return facts.OnePod(p.Class)
	case p.resized:
		return facts.LoadOf(p.Class, 1, nil, nil)
	}
	return facts.LoadOf(p.Class, 1, p.Requests, p.Limits)
}

// Admitted returns what the units that hold quota request.
func (c *Charge) Admitted() facts.Amounts {
	sum := facts.Amounts{}
	for _, u := range c.Holding {
		sum.AddTimes(u.Asked(), 1)
	}
	return sum
}

// Grown returns by how much the pods request more than was admitted. It is nothing outside of the queue.
func (c *Charge) Grown() facts.Amounts {
	sum := facts.Amounts{}
	for _, p := range c.Pods {
		sum.AddTimes(p.Requests, 1)
	}
	if c.Unit == nil {
		return nil
	}
	return sum.Above(c.Admitted())
}

// Asked returns what a unit is charged in a tree. A unit that shows that only pods are left is charged for
// its pods.
func (u *Unit) Asked() facts.Amounts {
	if u.Facts.PodsRemain() {
		return nil
	}
	return u.Facts.Total
}

// Node returns the node of a tree that a unit is charged to. That is its group or, if the tree has no group
// for it any more, the nearest remaining ancestor of the group that admitted it.
func (s *State) Node(t *facts.Tree, u *Unit) *facts.Node {
	namespace, quota := s.Place(u)
	if n, err := t.Group(namespace, quota); err == nil {
		return n
	}
	return t.Nearest(u.Facts.Quota)
}

// Place returns the namespace of a unit and the quota that it or its job names.
func (s *State) Place(u *Unit) (namespace, quota string) {
	namespace, quota = u.Namespace, u.Facts.QuotaName
	if j := s.JobOf(u); j != nil && j.Facts != nil {
		namespace, quota = j.Namespace, cmp.Or(quota, j.Facts.QuotaName)
	}
	return namespace, quota
}

// Unseen reports whether the controller need not count a pod at a time: it was created less than lag
// before, its grace period is over, or its removal has begun.
func (s *State) Unseen(p *Pod, at time.Time, lag time.Duration) bool {
	fresh := !p.Created.IsZero() && at.Sub(p.Created.Time) < lag
	leaves, leaving := s.leaving[p.UID]
	return fresh || !p.until.IsZero() && !at.Before(p.until) || leaving && leaves.Before(at)
}
