package scheduler

import (
	"cmp"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

const (
	// OverQuotaAfter is how long a node must exceed its limit before this is reported. Pods that are being deleted do
	// not count, because an operator can create their replacements earlier.
	OverQuotaAfter = 10 * time.Second
	// overQuotaInterval is the shortest time between two comparisons with the limits.
	overQuotaInterval = time.Second
)

// overQuota watches the spaces whose usage exceeds their limits. Usually there are none: admissions never exceed a
// limit, but pods can, and limits can be lowered.
type overQuota struct {
	// since is when each of these spaces began to exceed its limit even without the pods that are being deleted; 0 if it
	// does not.
	since map[quota.Space]instant
	// shown are the units that show that they are over quota, and messages is what units must show.
	shown    map[*unit]struct{}
	messages map[*unit]string
	// excesses are the limits that have been exceeded for long enough, and pending are the spaces that may follow.
	excesses []quota.Excess
	pending  []quota.Space
	// checkedAt is the time of the last comparison, and checkAt that of the next one; 0 if none is due.
	checkedAt, checkAt instant
}

func newOverQuota() overQuota {
	return overQuota{since: map[quota.Space]instant{}, shown: map[*unit]struct{}{}}
}

// touch requests a comparison because something that it depends on has changed.
func (o *overQuota) touch() {
	if len(o.since) > 0 || len(o.shown) > 0 {
		o.checkAt = earliest(o.checkAt, o.checkedAt.plus(overQuotaInterval))
	}
}

// Excesses returns the limits that have been exceeded for OverQuotaAfter, by node. certain is false while others have
// been exceeded for a shorter time. After a start, these may be limits that were reported before.
func (s *Scheduler) Excesses() (excesses []quota.Excess, certain bool) {
	return s.over.excesses, len(s.over.pending) == 0 && s.over.checkAt == 0
}

// seeExcess records the spaces of the charge that are above their limits.
func (s *Scheduler) seeExcess(c *charge) {
	if s.limits == nil {
		return
	}
	c.group.Spaces(&c.Charge, func(space quota.Space) {
		if space.Bound != quota.Max || s.room(space) >= 0 {
			return
		}
		if _, known := s.over.since[space]; !known {
			s.over.since[space] = 0
		}
	})
	s.over.touch()
}

// replaceLimits prepares a change of the backend. Call the result when everything is charged to the new backend.
func (s *Scheduler) replaceLimits() (done func()) {
	type limit struct {
		node     string
		resource resources.ID
	}
	before := map[limit]instant{}
	if len(s.over.since) > 0 {
		usage := s.backend.Usage()
		for space, since := range s.over.since {
			before[limit{usage[space.Node].Path, space.Resource}] = since
		}
	}
	clear(s.over.since)
	return func() {
		if len(before) > 0 && s.backend != nil {
			usage := s.backend.Usage()
			for space := range s.over.since {
				s.over.since[space] = before[limit{usage[space.Node].Path, space.Resource}]
			}
		}
		s.over.checkAt = s.over.checkedAt // the excesses are from the old limits
		s.over.touch()
	}
}

// watchLimits compares usage with the limits, and requests the writes that show the result on units.
func (s *Scheduler) watchLimits(now time.Time) {
	o, at := &s.over, instantOf(now)
	if o.checkAt == 0 || at < o.checkAt {
		return
	}
	o.checkedAt, o.checkAt, o.pending = at, 0, nil
	leaving := s.terminating()
	var over []quota.Space
	for space, since := range o.since {
		room := s.room(space)
		switch {
		case room >= 0:
			delete(o.since, space)
			continue
		case leaving[space] >= -room:
			since = 0
		case since == 0:
			since = at
		}
		o.since[space] = since
		if since == 0 {
			continue
		}
		if due := since.plus(OverQuotaAfter); due > at {
			o.checkAt = earliest(o.checkAt, due)
			o.pending = append(o.pending, space)
		} else {
			over = append(over, space)
		}
	}
	slices.SortFunc(over, func(a, b quota.Space) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Resource, b.Resource))
	})
	var excesses []quota.Excess
	for _, space := range over {
		excess, _ := s.limits.Excess(space)
		excesses = append(excesses, excess)
	}
	o.excesses = excesses
	s.showOverQuota(over)
}

// terminating returns how much of each exceeded space belongs to pods that are being deleted.
func (s *Scheduler) terminating() map[quota.Space]int64 {
	leaving := map[quota.Space]int64{}
	if len(s.over.since) == 0 {
		return leaving
	}
	add := func(c *charge, lasting resources.Vector) {
		if c == nil || c.Pods.Equal(lasting) {
			return
		}
		without := quota.Charge{Demand: c.Demand, Pods: lasting}
		total := without.Total()
		for _, a := range c.Total() {
			left, _ := total.Get(a.ID)
			for _, node := range c.group.Nodes() {
				space := quota.Space{Node: node, Resource: a.ID, Bound: quota.Max}
				// Without one of the pods that share a claim, those that are left can have another type.
				leaving[space] = resources.AddTimes(leaving[space], max(a.Value-left, 0), 1)
			}
		}
	}
	for id, h := range s.holders {
		c, lasting := h.left, s.pods.Lasting(id)
		if len(h.units) > 0 {
			c, lasting = h.units[0].charged, h.beyondGrowth(lasting)
		}
		add(c, lasting)
	}
	for namespace, c := range s.strays {
		add(c, s.pods.Lasting(strays(namespace)))
	}
	return leaving
}

// showOverQuota requests the writes that mark units whose pods exceed what was admitted while one of these spaces
// exceeds its limit, and those that clear the mark. A unit whose job is over does not show it, because it is no longer
// charged for its admission.
func (s *Scheduler) showOverQuota(over []quota.Space) {
	o := &s.over
	o.messages = nil
	if len(over) > 0 {
		o.messages = map[*unit]string{}
		for id, h := range s.holders {
			if len(h.units) == 0 || !h.units[0].Phase.holdsQuota() || h.units[0].charged == nil || h.units[0].Over {
				continue
			}
			if message := s.overMessage(h.units[0], h.beyondGrowth(s.pods.Lasting(id)), over); message != "" {
				o.messages[h.units[0]] = message
			}
		}
	}
	var units []*unit
	for u := range o.messages {
		if !u.OverQuota {
			units = append(units, u)
		}
	}
	for u := range o.shown {
		if !s.staysOverQuota(u) {
			units = append(units, u)
		}
	}
	for _, u := range sortByKey(units) {
		if u.write.wanted == 0 && u.write.seq == 0 {
			kind := MarkOverQuota
			if u.OverQuota {
				kind = ClearOverQuota
			}
			s.outbox.want(u, kind)
		}
	}
	if len(units) > 0 { // until the writes are confirmed
		o.checkAt = earliest(o.checkAt, o.checkedAt.plus(overQuotaInterval))
	}
}

// staysOverQuota reports whether a unit still shows that it is over quota. After a start, it takes a while until it
// is certain again that a limit is exceeded.
func (s *Scheduler) staysOverQuota(u *unit) bool {
	if s.over.messages[u] != "" {
		return true
	}
	return u.charged != nil && u.holder != nil && u.holder.units[0] == u && !u.Over &&
		s.overMessage(u, u.holder.beyondGrowth(s.pods.Lasting(u.holder.Holder)), s.over.pending) != ""
}

// overMessage returns what to show on a unit whose pods request more than was admitted of a resource whose limit is
// exceeded; empty if there is no such resource.
func (s *Scheduler) overMessage(u *unit, requested resources.Vector, over []quota.Space) string {
	for _, space := range over {
		amount, _ := requested.Get(space.Resource)
		admitted, _ := u.Demand.Requests.Get(space.Resource)
		if amount > admitted && slices.Contains(u.charged.group.Nodes(), space.Node) {
			excess, _ := s.limits.Excess(space)
			return excess.UnitMessage(amount, admitted)
		}
	}
	return ""
}

// composeOverQuota completes a MarkOverQuota or ClearOverQuota write. It returns false if the write is not needed.
func (s *Scheduler) composeOverQuota(u *unit, w *Write) bool {
	if w.Kind == ClearOverQuota {
		w.Reason, w.Message = wellknown.ReasonWithinLimits, "the quota is within its limits, or the pods of the job request no more than was admitted"
		return u.OverQuota
	}
	w.Reason, w.Message = wellknown.ReasonLimitExceeded, s.over.messages[u]
	return !u.OverQuota && w.Message != "" && u.Phase.holdsQuota() && !u.Over // it may have ended since the request
}
