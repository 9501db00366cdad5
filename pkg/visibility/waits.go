package visibility

import (
	"fmt"
	"math"
	"slices"
	"strings"

	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// mostNames is the maximum number of units that a message names.
const mostNames = 3

// named adds units to a remedy. It returns a text that names the first ones that the caller may list, and whether
// there are several units.
func (m *Model) named(remedy *visibilityv1alpha1.Remedy, units []int32, access Access) (text string, several bool) {
	slices.SortFunc(units, func(a, b int32) int { return strings.Compare(m.view.Units[a].Key, m.view.Units[b].Key) })
	var names []string
	for _, i := range units {
		switch {
		case !access.Units(namespaceOf(m.view.Units[i].Key)):
			remedy.HiddenUnits++
			continue
		case len(remedy.Units) < mostEnded:
			remedy.Units = append(remedy.Units, m.summary(i))
		}
		if len(names) < mostNames {
			names = append(names, m.view.Units[i].Key)
		}
	}
	more := len(units) - len(names)
	switch {
	case len(names) == 0:
		text = counted(more) + " that you may not list"
	case more > 0:
		text = fmt.Sprintf("%s and %d more", strings.Join(names, ", "), more)
	default:
		text = strings.Join(names, ", ")
	}
	return text, len(units) != 1
}

// untilStopped returns which evictions a unit waits for.
func (m *Model) untilStopped(u *scheduler.UnitView, access Access) visibilityv1alpha1.Remedy {
	remedy := visibilityv1alpha1.Remedy{Type: visibilityv1alpha1.Wait}
	var evicted []int32
	for _, e := range m.view.Evictions {
		if e.For == u.UID {
			evicted = append(evicted, e.Unit)
		}
	}
	switch text, several := m.named(&remedy, evicted, access); {
	case len(evicted) == 0: // it gets what victims of other claimants free
		remedy.Message = "the jobs that are being evicted stop"
	case several:
		remedy.Message = text + " stop, which are being evicted for it"
	default:
		remedy.Message = text + " stops, which is being evicted for it"
	}
	return remedy
}

// asksAgain returns what else the queue requires of a unit after a backoff; empty for nothing.
func (m *Model) asksAgain(u *scheduler.UnitView) (text string) {
	if u.Queue < 0 {
		return ""
	}
	set := &m.view.Queues[u.Queue].Settings
	if set.Checks != "" {
		text = fmt.Sprintf("; its admission checks (%s) then decide again", strings.Join(set.Checks.Names(), ", "))
	}
	if set.PodsReady.Timeout > 0 {
		text += fmt.Sprintf("; after its release, all its pods must be ready within %v, or it is stopped again", set.PodsReady.Timeout)
	}
	return text
}

// whilePaused returns what admits a unit that would borrow while borrowing is paused and lacks nothing else.
func (m *Model) whilePaused(i int32, group quota.Group, r *quota.Refusal, access Access) (all []visibilityv1alpha1.Remedy) {
	u := &m.view.Units[i]
	if remedy := m.withinGuarantee(u, group, r); remedy != nil {
		all = append(all, *remedy)
	}
	if remedy := m.untilUnpaused(u, group, access); remedy != nil {
		all = append(all, *remedy)
	}
	return all
}

// withinGuarantee returns the remedy to request at most the unused part of the group's guarantee, which is never
// paused; nil if nothing is unused, or if the unit would still not fit.
func (m *Model) withinGuarantee(u *scheduler.UnitView, group quota.Group, r *quota.Refusal) *visibilityv1alpha1.Remedy {
	room := m.view.Backend.Room(quota.Space{Node: group.Nodes()[0], Resource: r.Lack.Resource, Bound: quota.OwnMin})
	if room <= 0 || room == math.MaxInt64 || room >= r.Asked {
		return nil
	}
	less := u.Demand
	less.Requests = less.Requests.With(r.Lack.Resource, room)
	if group.Fits(less) != nil {
		return nil
	}
	from, to := resources.Format(r.Resource, r.Asked), resources.Format(r.Resource, room)
	return &visibilityv1alpha1.Remedy{Type: visibilityv1alpha1.LowerRequest,
		Message: fmt.Sprintf("request at most %s %s, the unused part of the min of quota %s", to, r.Resource, group.Path()),
		Changes: []visibilityv1alpha1.QuotaChange{{Field: "request", Resource: r.Resource, From: from, To: to}}}
}

// untilUnpaused returns which units quota is reserved for, and what must be unused after they have started; nil if the
// unit lacks anything else.
func (m *Model) untilUnpaused(u *scheduler.UnitView, group quota.Group, access Access) *visibilityv1alpha1.Remedy {
	var spaces []quota.Space
	var amounts []string
	for _, l := range m.view.Backend.Lacks(group, u.Demand) {
		if l.Lack.Bound != quota.Lending {
			return nil
		}
		spaces = append(spaces, l.Lack.Space)
		amounts = append(amounts, fmt.Sprintf("%s %s is unused in quota %s", resources.Format(l.Resource, l.Asked), l.Resource, l.Node))
	}
	var owed []int32
	for i := range m.view.Units {
		other := &m.view.Units[i]
		if other.Phase == scheduler.Waiting && other.Refusal != nil &&
			slices.ContainsFunc(other.Refusal.Owed, func(l quota.Lack) bool { return slices.Contains(spaces, l.Space) }) {
			owed = append(owed, int32(i))
		}
	}
	if len(owed) == 0 {
		return nil
	}
	remedy := &visibilityv1alpha1.Remedy{Type: visibilityv1alpha1.Wait}
	text, several := m.named(remedy, owed, access)
	verb := "starts with what is guaranteed to its quota"
	if several {
		verb = "start with what is guaranteed to their quotas"
	}
	remedy.Message = fmt.Sprintf("%s %s, and then %s", text, verb, strings.Join(amounts, ", and "))
	return remedy
}

// untilReclaimed returns the remedy to wait until units that have borrowed what the unit is owed reach their
// MinRunTime and are evicted; nil if no MinRunTime delays an eviction.
func (m *Model) untilReclaimed(u *scheduler.UnitView, r *quota.Refusal) *visibilityv1alpha1.Remedy {
	planner, is := m.view.Backend.(quota.Planner)
	if !is || len(r.Owed) == 0 {
		return nil
	}
	for i := range m.view.Units {
		v := &m.view.Units[i]
		if v.Charge == nil || v.Queue < 0 || v.Queue == u.Queue || v.DequeuedAt().IsZero() || v.Unstoppable || !v.Demand.Preemptible ||
			m.view.Backend.Holds(r, v.Charged()) <= 0 {
			continue
		}
		protected := m.view.MinRunTime
		if own := m.view.Queues[v.Queue].Settings.Preemption.MinRunTime; own.Set {
			protected = own.Value
		}
		from := m.group(v)
		if from == nil || !planner.Reclaims(from) || !v.DequeuedAt().Add(protected).After(m.view.At) {
			continue
		}
		room := m.view.Backend.Room(quota.Space{Node: from.Nodes()[0], Resource: r.Lack.Resource, Bound: quota.OwnMin})
		if room < 0 || room == math.MaxInt64 { // all that it uses is borrowed
			return &visibilityv1alpha1.Remedy{Type: visibilityv1alpha1.Wait,
				Message: "kube-queue evicts jobs that have borrowed, when they have run for their minRunTime"}
		}
	}
	return nil
}
