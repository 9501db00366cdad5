package visibility

import (
	"fmt"
	"math"
	"slices"
	"strings"

	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// raise returns the smallest raise of limits that admits the unit; nil if none was found.
func (s *search) raise() *visibilityv1alpha1.Remedy {
	others, found := s.enough(mostToRaise, func(others []int32) outcome {
		w, below, ok := s.raised(s.raises(others))
		if !ok {
			return outcome{}
		}
		return s.outcome(below, w)
	}, s.inOrder)
	if !found {
		return nil
	}
	written, err := s.unreserved().Written(s.raises(others))
	if err != nil {
		return nil
	}
	remedy := &visibilityv1alpha1.Remedy{Type: visibilityv1alpha1.RaiseQuota}
	var parts []string
	for _, w := range written {
		change := visibilityv1alpha1.QuotaChange{Quota: w.Quota, Field: w.Field, Resource: w.Resource,
			From: resources.Format(w.Resource, w.From), To: resources.Format(w.Resource, w.To)}
		remedy.Changes = append(remedy.Changes, change)
		parts = append(parts, fmt.Sprintf("%s of %s in quota %s from %s to %s", change.Field, change.Resource, change.Quota, change.From, change.To))
	}
	remedy.Message = s.then("an administrator raises " + strings.Join(parts, ", and "))
	s.addOthers(remedy, others)
	return remedy
}

// raised returns a world with higher limits, and the path of the topmost node with a higher limit: units of all queues
// below it compete for the added quota. It returns false if there is no such node, or if the limits cannot be raised.
func (s *search) raised(raises []quota.Raise) (w world, below string, ok bool) {
	written, err := s.unreserved().Written(raises)
	if err != nil || len(written) == 0 {
		return world{}, "", false
	}
	w, below = s.first.world, s.group.Path()
	w.raises = raises
	for _, change := range written {
		if strings.HasPrefix(below, change.Quota+"/") {
			below = change.Quota
		}
	}
	return w, below, true
}

// raises returns what to raise for the unit and others.
func (s *search) raises(others []int32) (raises []quota.Raise) {
	for _, n := range s.needs(s.unreserved(), others) {
		raises = append(raises, quota.Raise{Space: n.Space, By: n.missing})
	}
	return raises
}

// inOrder returns the units that are admitted before the unit if the limits that the unit lacks have room for all of
// them. If these units then exhaust another limit, it opens that limit as well. If that is not enough, it opens all
// limits of the chain, because room is reserved for others once they lack only what they are owed.
func (s *search) inOrder() []int32 {
	var opened []quota.Space
	open := func(needs []need) (more bool) {
		for _, n := range needs {
			if n.Bound == quota.Lending || n.Bound == quota.Kept {
				n.Bound = quota.Max // the unit has room only if the units that it is kept for have room
			}
			if !slices.Contains(opened, n.Space) {
				opened, more = append(opened, n.Space), true
			}
		}
		return more
	}
	open(s.needs(s.reserved, nil))
	open(s.needs(s.unreserved(), s.noGreater()))
	var last outcome
	for range mostOpened {
		if w, below, ok := s.roomy(opened); ok {
			last = s.outcome(below, w)
		}
		s.everybody = last.others
		if last.admitted {
			return s.with(nil, last.others[:last.before], nil)
		}
		admitted := s.with(nil, last.others, nil)
		ahead := s.with(admitted, s.ahead, nil)
		if !open(s.needs(s.unreserved(), admitted)) && !open(s.needs(s.unreserved(), ahead)) && !open(s.needs(s.reserved, ahead)) && !open(s.limits()) {
			break
		}
	}
	return s.with(s.ahead, last.others, nil)
}

// limits returns all spaces that limit the unit or those ahead of it.
func (s *search) limits() (all []need) {
	demand := quota.Demand{Requests: s.requested(s.unit), Preemptible: s.view.Units[s.unit].Demand.Preemptible}
	groupIn(s.unreserved(), &s.view.Units[s.unit]).Spaces(&quota.Charge{Demand: demand}, func(space quota.Space) {
		if (space.Bound == quota.Max || space.Bound == quota.FixedMax) && s.unreserved().Room(space) < math.MaxInt64 {
			all = append(all, need{Space: space})
		}
	})
	return all
}

// roomy returns a world in which the spaces have room for all units that take part.
func (s *search) roomy(spaces []quota.Space) (w world, below string, ok bool) {
	some := make([]quota.Raise, len(spaces))
	for i, space := range spaces {
		some[i] = quota.Raise{Space: space, By: 1}
	}
	if _, below, ok = s.raised(some); !ok {
		return w, below, false
	}
	var all []int32
	s.participants(s.unit, s.scope(s.unit, below), s.first.world, func(i int32) {
		if i != s.unit {
			all = append(all, i)
		}
	})
	return s.raised(slices.DeleteFunc(s.raises(all), func(r quota.Raise) bool { return !slices.Contains(spaces, r.Space) }))
}
