package audit

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// charge is what one object has: the units that hold quota for it, and the pods that count for it. A pod counts for
// the nearest object among itself and its controllers that has, or had, an admitted unit.
type charge struct {
	unit    *unit // one that holds quota, or else the last one that did; nil for pods outside of the queue
	job     *job  // nil if the log does not show it
	holding []*unit
	pods    []*pod
}

func (c *charge) String() string {
	switch {
	case c.job != nil:
		return c.job.String()
	case c.unit != nil:
		return c.unit.String()
	}
	return "other pods"
}

// holds reports whether a unit holds quota, as far as the log shows.
func (s *world) holds(u *unit) bool {
	j := s.jobOf(u)
	return s.holding[u] && !u.unclear && (j == nil || j.over().IsZero())
}

// home returns the object that a pod counts for, with its unit, or nil if it counts for none. A pod that was created
// after its unit was deleted counts only while the job is released.
func (s *world) home(p *pod) (owner string, home *unit) {
	for _, uid := range s.chain(p.uid) {
		units := s.admitted[uid]
		if len(units) == 0 {
			continue
		}
		u := units[len(units)-1]
		for _, other := range units {
			if s.holds(other) && !s.holds(u) || other.exists() && !u.exists() {
				u = other
			}
		}
		j := s.jobs[uid]
		released := j != nil && j.over().IsZero() && !j.now.suspended
		if u.exists() || released || p.created.IsZero() || p.created.Before(u.gone) {
			return uid, u
		}
	}
	return "", nil
}

// charges groups the units that hold quota, and the pods that counts selects, by the object that they belong to. The
// last charge has the pods outside of the queue. A namespace of "" means all.
func (s *world) charges(namespace string, counts func(*pod) bool) []*charge {
	byOwner := map[string]*charge{}
	of := func(owner string, u *unit) *charge {
		c := byOwner[owner]
		if c == nil {
			c = &charge{unit: u, job: s.jobs[owner]}
			byOwner[owner] = c
		}
		return c
	}
	for u := range s.holding {
		if (namespace == "" || u.namespace == namespace) && s.holds(u) {
			c := of(cmp.Or(s.ownerOf(u), u.uid), u)
			c.holding = append(c.holding, u)
		}
	}
	others := &charge{}
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
			c.pods = append(c.pods, p)
		}
	}
	all := slices.SortedFunc(maps.Values(byOwner), func(a, b *charge) int {
		return cmp.Or(cmp.Compare(a.String(), b.String()), cmp.Compare(a.unit.uid, b.unit.uid))
	})
	return append(all, others)
}

// requesting selects the live pods whose requests are known.
func requesting(p *pod) bool { return p.live() && !p.resized }

// unseen reports whether the controller may ignore a pod at a time: the pod was created less than lag before, its
// grace period is over, or its removal has begun.
func (s *world) unseen(p *pod, at time.Time, lag time.Duration) bool {
	fresh := !p.created.IsZero() && at.Sub(p.created.Time) < lag
	leaves, leaving := s.leaving[p.uid]
	return fresh || !p.until.IsZero() && !at.Before(p.until) || leaving && leaves.Before(at)
}

// uses returns how much the charge uses of a tree: what its units request, or its pods if that is more.
func (c *charge) uses() amounts {
	pods, uses := amounts{}, amounts{}
	for _, p := range c.pods {
		if !p.gated {
			pods.addTimes(p.requests, 1)
		}
	}
	for _, u := range c.holding {
		uses.addTimes(u.asked(), 1)
	}
	uses.addTimes(pods.above(uses), 1)
	return uses
}

// taken returns how much the charge uses of a key of a ResourceQuota, in the same way. A pod that was resized counts
// only as a pod: its requests are unknown.
func (c *charge) taken(key string) int64 {
	var admitted, pods int64
	for _, u := range c.holding {
		admitted += weigh(key, u.now.pods...)
	}
	for _, p := range c.pods {
		g := p.podGroup
		if p.resized {
			g.requests, g.limits = nil, nil
		}
		g.ended = g.ended || p.gated // the quota counts a gated pod before its job holds anything
		pods += weigh(key, g)
	}
	return max(admitted, pods)
}

// asked returns what a unit is charged in a tree, including one job. A unit that shows that only pods are left is
// charged for its pods.
func (u *unit) asked() amounts {
	asked := amounts{maxJobs: 1}
	if !u.now.podsRemain() {
		asked.addTimes(u.now.total, 1)
	}
	return asked
}

// place returns the namespace of a unit and the quota that it or its job names.
func (s *world) place(u *unit) (namespace, quota string) {
	if j := s.jobOf(u); j != nil {
		return j.namespace, cmp.Or(u.now.quotaName, j.now.quotaName)
	}
	return u.namespace, u.now.quotaName
}

// nodeOf returns the node of a tree that a unit is charged to. That is its group or, if the tree no longer has a
// group for it, the nearest remaining ancestor of the group that admitted it.
func (s *world) nodeOf(t *tree, u *unit) *node {
	namespace, quota := s.place(u)
	if n, err := t.group(namespace, quota); err == nil {
		return n
	}
	return t.nearest(u.now.Status.Quota)
}
