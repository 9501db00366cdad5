package scheduler

import (
	"cmp"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/pods"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// charge is what is charged, and where.
type charge struct {
	group quota.Group
	quota.Charge
	// since is the value of claims.changes when its holder was first charged. It orders charges by age.
	since uint64
}

// holder is a job whose pods count toward its units. It exists while it has a unit that was ever admitted. After
// that, it exists until the job's pods are gone.
type holder struct {
	pods.Holder
	label string
	// units are the units that name the job, usually one; those for growth are last. The first is charged for what the
	// pods request beyond what the others were admitted with.
	units []*unit
	// podsGoneAt is when the last pod was gone or idle; 0 if there was none.
	podsGoneAt instant
	// left is the charge for pods that remain after the last unit is gone; nil if there are none. lastQuotaName,
	// lastQuota and preemptible are from the last unit.
	left                     *charge
	lastQuotaName, lastQuota string
	preemptible              bool
}

// PodChanged means that a pod exists or has changed.
type PodChanged struct{ Pod pods.Pod }

// PodGone means that a pod was deleted.
type PodGone struct{ Namespace, UID string }

// OwnerChanged means that an object that can own pods exists or has changed.
type OwnerChanged struct {
	Namespace, UID string
	// Owner identifies the object that it belongs to; empty if none.
	Owner string
	// Label identifies the object for pods that have lost their controller; empty if its UID does.
	Label string
	// Exempt is whether its pods are not charged.
	Exempt bool
}

// OwnerGone means that such an object was deleted.
type OwnerGone struct{ Namespace, UID, Label string }

func (e PodChanged) apply(s *Scheduler, now time.Time) {
	s.pods.Pod(e.Pod)
	s.chargePods(now)
}

func (e PodGone) apply(s *Scheduler, now time.Time) {
	s.pods.Gone(e.Namespace, e.UID)
	s.chargePods(now)
}

func (e OwnerChanged) apply(s *Scheduler, now time.Time) {
	s.pods.Object(e.Namespace, e.UID, e.Owner)
	s.pods.Label(e.Namespace, e.Label, e.UID)
	s.pods.Exempt(e.Namespace, e.UID, e.Exempt)
	s.chargePods(now)
}

func (e OwnerGone) apply(s *Scheduler, now time.Time) {
	s.pods.Gone(e.Namespace, e.UID)
	s.pods.Unlabel(e.Namespace, e.Label)
	s.chargePods(now)
}

// chargePods updates the charges of the holders whose pods have changed.
func (s *Scheduler) chargePods(now time.Time) {
	changed := s.pods.Changed()
	if len(changed) > 0 {
		s.over.touch()
	}
	if len(changed) > 1 {
		slices.SortFunc(changed, func(a, b pods.Holder) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.UID, b.UID))
		})
	}
	for _, id := range changed {
		switch h := s.holders[id]; {
		case id.UID == "":
			s.chargeStrays(id)
		case h == nil:
		case len(h.units) > 0:
			s.chargeUnit(h.units[0])
			s.seeScheduling(h.units[0], now)
			if s.pods.Busy(id) == 0 {
				h.podsGoneAt = instantOf(now)
			}
			for _, u := range h.units {
				s.seeStopping(u, now)
				if s.off[u.Kind] != nil {
					s.schedule(u, now)
				}
				if s.mayRequeue(u) || u.write.wanted == Requeue {
					s.requestStep(u, now)
				}
			}
		default:
			s.chargeLeft(h)
		}
	}
}

// hold registers the unit's job as a holder if the unit was ever admitted or replaces one that was. Other units have
// no pods, and most units wait.
func (s *Scheduler) hold(u *unit) {
	id := pods.Holder{Namespace: u.namespace(), UID: u.Owner}
	wanted := u.Owner != "" && (u.assumed || u.Restored || u.Attempts > 0 || u.reservations() > 0 || u.Phase.holdsQuota())
	if u.holder != nil && (!wanted || u.holder.Holder != id) {
		s.unhold(u)
	}
	if !wanted {
		return
	}
	h := u.holder
	if h == nil {
		if h = s.holders[id]; h == nil {
			h = &holder{Holder: id, label: u.Label}
			s.holders[id] = h
			s.pods.Hold(id)
			s.pods.Label(id.Namespace, h.label, id.UID)
		}
		at := len(h.units)
		if !u.Growth {
			at = 0
			for at < len(h.units) && !h.units[at].Growth {
				at++
			}
		}
		h.units = slices.Insert(h.units, at, u)
		u.holder = h
		if at == 0 && len(h.units) > 1 {
			s.chargeUnit(h.units[1])                // its pods are charged to this unit now
			s.requestStep(h.units[1], s.meters.now) // so it does not have to wait for them
		}
		s.chargeLeft(h)
	}
	h.lastQuotaName, h.lastQuota, h.preemptible = u.QuotaName, u.Quota, u.Demand.Preemptible
}

// unhold reverts hold. Remaining pods are charged to another unit of the job. If there is none, they are charged
// without a unit until they are gone.
func (s *Scheduler) unhold(u *unit) {
	h := u.holder
	if h == nil {
		return
	}
	u.holder = nil
	h.units = slices.DeleteFunc(h.units, func(other *unit) bool { return other == u })
	if len(h.units) > 0 {
		s.chargeUnit(h.units[0])
		return
	}
	s.chargeLeft(h)
}

// chargeUnit charges the unit for what it was admitted with, while it holds quota, and for what its pods request.
func (s *Scheduler) chargeUnit(u *unit) {
	var now *charge
	if group := s.chargedTo(u); group != nil {
		now = &charge{group: group, Charge: quota.Charge{Demand: quota.Demand{Preemptible: u.Demand.Preemptible}}}
		if u.holdsQuota() {
			now.Demand = u.Demand
		}
		if h := u.holder; h != nil && h.units[0] == u {
			now.Pods = h.beyondGrowth(s.pods.Requested(h.Holder))
		}
		if !u.holdsQuota() && len(now.Pods) == 0 {
			now = nil
		}
	}
	s.recharge(u.namespace(), &u.charged, now)
	if u.leaving != nil {
		s.planUncharge(u)
	}
	if h := u.holder; u.Growth && h != nil && h.units[0] != u {
		s.chargeUnit(h.units[0])
	}
}

// beyondGrowth returns what the pods of the job request beyond what its units for growth were admitted with.
func (h *holder) beyondGrowth(requested resources.Vector) resources.Vector {
	for _, u := range h.units[1:] {
		if u.Growth && u.charged != nil {
			requested = requested.Minus(u.charged.Demand.Requests)
		}
	}
	return requested
}

// chargeLeft charges the remaining pods of a job without units. When the last pod is gone, the holder is dropped.
func (s *Scheduler) chargeLeft(h *holder) {
	if len(h.units) > 0 {
		s.recharge(h.Namespace, &h.left, nil)
		return
	}
	if s.pods.Pods(h.Holder) == 0 {
		s.recharge(h.Namespace, &h.left, nil)
		delete(s.holders, h.Holder)
		s.pods.Drop(h.Holder)
		s.pods.Unlabel(h.Namespace, h.label)
		return
	}
	var now *charge
	requested := s.pods.Requested(h.Holder)
	if group := s.groupOf(h.Namespace, h.lastQuotaName, h.lastQuota); group != nil && len(requested) > 0 {
		now = &charge{group: group, Charge: quota.Charge{Demand: quota.Demand{Preemptible: h.preemptible}, Pods: requested}}
	}
	s.recharge(h.Namespace, &h.left, now)
}

// chargeStrays charges the pods of a namespace that belong to no unit.
func (s *Scheduler) chargeStrays(id pods.Holder) {
	was := s.strays[id.Namespace]
	var now *charge
	if requested := s.pods.Requested(id); len(requested) > 0 && s.backend != nil {
		if group := s.backend.Unqueued(id.Namespace); group != nil {
			now = &charge{group: group, Charge: quota.Charge{Demand: quota.Demand{Preemptible: true}, Pods: requested, Unqueued: true}}
		}
	}
	s.recharge(id.Namespace, &was, now)
	if was == nil {
		delete(s.strays, id.Namespace)
	} else {
		s.strays[id.Namespace] = was
	}
}

// dropCharges forgets all charges, because their backend is dropped too. It returns the units to charge again.
func (s *Scheduler) dropCharges(units []*unit) (charged []*unit) {
	for _, u := range units {
		u.charged = nil
		u.forgetPlans()
		if u.holdsQuota() || u.holder != nil {
			charged = append(charged, u)
		}
	}
	for _, h := range s.holders {
		h.left = nil
	}
	clear(s.strays)
	s.meters.stop()
	return charged
}

// chargeWithoutUnit charges all pods that are not charged together with a unit.
func (s *Scheduler) chargeWithoutUnit() {
	for _, h := range s.holders {
		s.chargeLeft(h)
	}
	for _, namespace := range s.pods.Namespaces() {
		s.chargeStrays(strays(namespace))
	}
}

// strays identifies the pods of a namespace that belong to no unit.
func strays(namespace string) pods.Holder { return pods.Holder{Namespace: namespace} }

// recharge replaces a charge for holders in the namespace. Either can be nil. It wakes the shapes that may now have more
// room.
func (s *Scheduler) recharge(namespace string, at **charge, now *charge) {
	was := *at
	switch {
	case was == nil && now == nil:
		return
	case was == nil || now == nil || !was.Same(&now.Charge):
		s.changes++
	}
	switch {
	case was == nil:
		*at, now.since = now, s.changes
		total := now.Total()
		now.group.Charge(&now.Charge)
		s.meters.change(now.group.Path(), namespace, nil, total)
		s.usedMore(now, total)
	case now == nil:
		*at = nil
		total := was.Total()
		was.group.Uncharge(&was.Charge)
		s.meters.change(was.group.Path(), namespace, total, nil)
		s.tournament.used(was.group)
		was.group.Spaces(&was.Charge, s.wake)
		s.reviewReservations(was.group, total) // maybe nothing is borrowed any more
	case was.group != now.group:
		s.recharge(namespace, at, nil)
		s.recharge(namespace, at, now)
	case !was.Same(&now.Charge):
		*at, now.since = now, was.since
		s.exchange(namespace, was, now)
	}
}

// exchange replaces a charge with another one to the same group.
func (s *Scheduler) exchange(namespace string, was, now *charge) {
	s.spaces, s.rooms = s.spaces[:0], s.rooms[:0]
	was.group.Spaces(&was.Charge, func(space quota.Space) {
		s.spaces, s.rooms = append(s.spaces, space), append(s.rooms, s.room(space))
	})
	was.group.Uncharge(&was.Charge)
	now.group.Charge(&now.Charge)
	for i, space := range s.spaces {
		if s.room(space) > s.rooms[i] {
			s.wake(space)
		}
	}
	if was, is := was.Total(), now.Total(); !was.Equal(is) {
		s.meters.change(now.group.Path(), namespace, was, is)
		s.usedMore(now, is)
		s.reviewReservations(now.group, was)
	}
}

// usedMore updates what depends on usage after a charge with this total was added.
func (s *Scheduler) usedMore(c *charge, total resources.Vector) {
	s.reviewClaims(c)
	s.tournament.used(c.group)
	s.tournament.shrunk(c.group, total, s.unprove)
	if !c.Demand.Preemptible { // others have less of the resources that no guarantee names
		s.tournament.under(c.group.Nodes()[len(c.group.Nodes())-1], func(q *queueState) {
			if !q.tried.Shape().Demand.Preemptible {
				s.unprove(q)
			}
		})
	}
	s.wakeBorrowers(c.group, total)
	s.reviewReservations(c.group, total)
	s.seeExcess(c)
}

// wakeBorrowers wakes shapes that are owed quota that was not borrowed before.
func (s *Scheduler) wakeBorrowers(group quota.Group, used resources.Vector) {
	if !s.waitIndex.Awaits(quota.Borrowers) {
		return
	}
	for _, node := range group.Nodes() {
		for _, a := range used {
			s.wake(quota.Space{Node: node, Resource: a.ID, Bound: quota.Borrowers})
		}
	}
}

// holdsQuota reports whether the unit holds the quota that it was admitted to.
func (u *unit) holdsQuota() bool { return u.assumed || u.Phase.holdsQuota() }

// chargedGroup returns the group to which the unit is charged now; nil if none.
func (u *unit) chargedGroup() quota.Group {
	if u.charged == nil {
		return nil
	}
	return u.charged.group
}

// chargedTo returns the group that a unit is charged to if it holds quota or has pods; nil if none.
func (s *Scheduler) chargedTo(u *unit) quota.Group {
	if !u.holdsQuota() && u.holder == nil {
		return nil
	}
	return s.groupOf(u.namespace(), u.QuotaName, u.Quota)
}

// groupOf returns the group to charge for quota that was admitted at the path. If the group is gone, the unit is
// charged to what is left of it, so it still uses quota of the group's ancestors.
func (s *Scheduler) groupOf(namespace, quotaName, path string) quota.Group {
	if s.backend == nil {
		return nil
	}
	group, refusal := s.backend.Place(namespace, quotaName)
	if refusal != nil {
		return s.backend.Nearest(path)
	}
	return group
}
