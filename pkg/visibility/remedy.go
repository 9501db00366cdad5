package visibility

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// first is what has to be done before the quota matters: an object to change, or a time to wait for.
type first struct {
	visibilityv1alpha1.Remedy
	world
	// alone is whether it is not known what follows, so that nothing is added to it.
	alone bool
}

// remediesOfReserved returns what admits a unit that holds quota and waits for admission checks.
func (m *Model) remediesOfReserved(u *scheduler.UnitView, r *quota.Refusal) []visibilityv1alpha1.Remedy {
	if u.Phase != scheduler.Reserved || r.Reason != wellknown.ReasonAdmissionCheckPending {
		return nil
	}
	return []visibilityv1alpha1.Remedy{{Type: visibilityv1alpha1.Wait,
		Message: "the job starts when all its admission checks are Ready; the owner of each check decides: see status.admissionChecks of the unit"}}
}

// remedies adds what would admit a unit that waits for r.
func (m *Model) remedies(answer *visibilityv1alpha1.QueueUnitReviewStatus, i int32, r *quota.Refusal, access Access) {
	f := m.firstOf(i, r)
	if f.alone || m.view.Backend == nil || m.view.Units[i].Queue < 0 {
		if f.Message != "" {
			answer.WouldAdmit = append(answer.WouldAdmit, f.Remedy)
		}
		return
	}
	s := &search{Model: m, unit: i, first: f, access: access}
	if !s.prepare() {
		return
	}
	if f.Message != "" && m.admitted(i, s.group.Path(), f.world) {
		answer.WouldAdmit = append(answer.WouldAdmit, f.Remedy)
		return
	}
	if isLimit(r) && r.Impossible() {
		answer.WouldAdmit = append(answer.WouldAdmit, m.lower(r))
	}
	if remedy := s.raise(); remedy != nil {
		answer.WouldAdmit = append(answer.WouldAdmit, *remedy)
	}
	if remedy, until := s.ends(); remedy != nil {
		answer.WouldAdmit = append(answer.WouldAdmit, *remedy)
		if until != nil {
			answer.Until = latest(answer.Until, until)
		}
	}
}

func latest(a, b *metav1.Time) *metav1.Time {
	if a == nil || a.Before(b) {
		return b
	}
	return a
}

// lower returns that the job has to request less.
func (m *Model) lower(r *quota.Refusal) visibilityv1alpha1.Remedy {
	from, to := resources.Format(r.Resource, r.Asked), resources.Format(r.Resource, r.Limit)
	return visibilityv1alpha1.Remedy{Type: visibilityv1alpha1.LowerRequest,
		Message: fmt.Sprintf("request at most %s %s, and wait until so much is unused", to, r.Resource),
		Changes: []visibilityv1alpha1.QuotaChange{{Field: "request", Resource: r.Resource, From: from, To: to}}}
}

// firstOf returns what has to be done first for a unit that waits for r. Its message is empty if nothing has to be done
// but to wait for quota.
func (m *Model) firstOf(i int32, r *quota.Refusal) first {
	u := &m.view.Units[i]
	change := func(message string) first {
		return first{Remedy: visibilityv1alpha1.Remedy{Type: visibilityv1alpha1.ChangeObject, Message: message}}
	}
	alone := func(message string) first {
		f := change(message)
		f.alone = true
		return f
	}
	wait := func(message string) first {
		f := change(message)
		f.Type = visibilityv1alpha1.Wait
		return f
	}
	switch r.Reason {
	case wellknown.ReasonQueueStopped:
		name := m.view.Queues[u.Queue].Name
		f := change(fmt.Sprintf("an administrator resumes queue %s: sets its spec.stop to None", name))
		f.Command = fmt.Sprintf(`kubectl -n %s patch queue %s --type=merge -p '{"spec":{"stop":"None"}}'`, m.namespace, name)
		f.open = map[int32]bool{u.Queue: true}
		return f
	case wellknown.ReasonAdmissionCheckMissing:
		name := m.view.Queues[u.Queue].Name
		f := alone(fmt.Sprintf("an administrator creates AdmissionCheck %s, or removes it from spec.admissionChecks of queue %s", r.Node, name))
		return f
	case wellknown.ReasonInactive:
		f := change(fmt.Sprintf("set annotation %s of the job to \"true\"", wellknown.ActiveAnnotation))
		if m.kind(u.Kind) == "" {
			f.Message = "set spec.active of the unit to true"
		}
		return f
	case wellknown.ReasonSuspendedByUser:
		return change("set the suspend field of the job to false, or, where its mark is the annotation, annotation " + wellknown.SuspendAnnotation + " to \"true\"")
	case wellknown.ReasonNoQuota, wellknown.ReasonInvalidQuotaTree, wellknown.ReasonQuotaNotAllowed, wellknown.ReasonInvalidRequest,
		wellknown.ReasonTerminating, wellknown.ReasonAdmissionCheckRejected:
		return alone(r.Message())
	case wellknown.ReasonJobChanged:
		f := wait("job-extensions writes the new request into the unit, which is then tried again")
		f.alone = true
		return f
	case wellknown.ReasonBackoff:
		f := wait("the unit is tried again at " + u.RequeueAt().UTC().Format(time.RFC3339))
		return f
	case wellknown.ReasonWaitingForPods:
		f := wait(fmt.Sprintf("the pods of the job that queue %s has admitted last become ready, or the job ends", m.view.Queues[u.Queue].Name))
		f.open = map[int32]bool{u.Queue: true}
		return f
	case wellknown.ReasonPreempting:
		f := wait("the jobs that are being evicted stop")
		f.alone = true
		return f
	default:
		return first{}
	}
}

// search looks for the smallest change of quota, and for the units whose end would admit a unit.
type search struct {
	*Model
	unit   int32
	first  first
	access Access
	// group is that of the unit.
	group quota.Group
	// ahead are the units that are tried before the unit, in order.
	ahead []int32
}

// prepare reports whether there is anything to search.
func (s *search) prepare() bool {
	u := &s.view.Units[s.unit]
	if s.group = s.Model.group(u); s.group == nil {
		return false
	}
	line := s.contenders()[u.Queue]
	end, _ := slices.BinarySearchFunc(line, s.unit, func(a, b int32) int { return before(&s.view.Units[a], &s.view.Units[b]) })
	if end > mostOfQueue {
		return false
	}
	for _, i := range line[:end] {
		if !s.view.Units[i].RequeueAt().After(s.view.At) {
			s.ahead = append(s.ahead, i)
		}
	}
	return true
}

// need is what is missing below a limit for a unit and a number of units ahead of it.
type need struct {
	refusal *quota.Refusal
	missing int64
}

// needs returns what is missing for the unit and the first units ahead of it together. The units ahead are charged to a
// copy of the quota.
func (s *search) needs(ahead int) []need {
	names := s.view.Names.Clone()
	backend := s.view.Backend.Clone(names)
	group := s.Model.groupIn(backend, &s.view.Units[s.unit])
	demand := s.view.Units[s.unit].Demand
	missing := map[quota.Space]*need{}
	var order []quota.Space
	add := func(d quota.Demand) {
		lacks := backend.Lacks(group, d)
		if r := group.Fits(d); r != nil && isLimit(r) && r.Final() {
			lacks = append(lacks, r)
		}
		for _, l := range lacks {
			space := l.Lack.Space
			if l.Reason == wellknown.ReasonExceedsMinQuota && space.Bound != quota.FixedMax {
				space.Bound = quota.FixedMin
			}
			if missing[space] == nil {
				missing[space] = &need{refusal: l}
				order = append(order, space)
			}
		}
	}
	for _, i := range s.ahead[:ahead] {
		d := s.view.Units[i].Demand
		add(d)
		group.Charge(&quota.Charge{Demand: d})
	}
	add(demand)
	group.Charge(&quota.Charge{Demand: demand})
	var all []need
	for _, space := range order {
		n := missing[space]
		if n.missing = -backend.Room(space); n.missing > 0 {
			all = append(all, *n)
		}
	}
	return all
}

// groupIn returns the group of the queue of a unit in a backend.
func (m *Model) groupIn(backend quota.Explainer, u *scheduler.UnitView) quota.Group {
	group, _ := backend.Place(namespaceOf(u.Key), u.QuotaName)
	return group
}

// fewest returns the smallest number of units ahead for which try succeeds, and false if it fails for all. Units that
// are ahead may take what was meant for the unit, so that it has to be enough for them too.
func (s *search) fewest(try func(ahead int) bool) (ahead int, found bool) {
	if try(0) {
		return 0, true
	}
	low, high := 1, len(s.ahead)
	if high == 0 || !try(high) {
		return 0, false
	}
	const mostSteps = 500 // of units, for which the smallest change is searched and not only one that is enough
	if high > mostSteps {
		return high, true
	}
	for low < high {
		if middle := low + (high-low)/2; try(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return high, true
}

// raise returns the smallest raise of limits that admits the unit; nil if none was found.
func (s *search) raise() *visibilityv1alpha1.Remedy {
	raises := func(ahead int) (raises []quota.Raise, below string, ok bool) {
		needs := s.needs(ahead)
		for _, n := range needs {
			space := n.refusal.Lack.Space
			switch {
			case n.refusal.Reason == wellknown.ReasonExceedsMinQuota && space.Bound != quota.FixedMax, space.Bound == quota.FixedMin:
				space.Bound = quota.FixedMin
			case space.Bound == quota.Max:
			default:
				return nil, "", false // more max lends nothing that is reserved
			}
			raises = append(raises, quota.Raise{Space: space, To: n.refusal.Limit + n.missing})
		}
		return raises, s.topmost(needs), len(raises) > 0
	}
	ahead, found := s.fewest(func(ahead int) bool {
		w := s.first.world
		var below string
		var ok bool
		w.raises, below, ok = raises(ahead)
		return ok && s.admitted(s.unit, below, w)
	})
	if !found {
		return nil
	}
	remedy := &visibilityv1alpha1.Remedy{Type: visibilityv1alpha1.RaiseQuota, Ahead: int32(ahead)}
	var parts []string
	all, _, _ := raises(ahead)
	for _, r := range all {
		w, err := s.view.Backend.Written(r)
		if err != nil {
			return nil
		}
		change := visibilityv1alpha1.QuotaChange{Quota: w.Quota, Field: w.Field, Resource: w.Resource,
			From: resources.Format(w.Resource, w.From), To: resources.Format(w.Resource, w.To)}
		remedy.Changes = append(remedy.Changes, change)
		parts = append(parts, fmt.Sprintf("%s of %s in quota %s from %s to %s", change.Field, change.Resource, change.Quota, change.From, change.To))
	}
	remedy.Message = s.then("an administrator raises " + strings.Join(parts, ", and "))
	if ahead > 0 {
		remedy.Message += fmt.Sprintf("; that is enough for the %s ahead as well", units(ahead))
	}
	return remedy
}

// then puts what has to be done first in front of a message.
func (s *search) then(message string) string {
	if s.first.Message == "" {
		return message
	}
	return s.first.Message + ", and " + message
}

func units(n int) string {
	if n == 1 {
		return "unit"
	}
	return fmt.Sprintf("%d units", n)
}

// ends returns the smallest set of units whose end admits the unit, by the greatest amounts first, and when they have
// ended at the latest; nil if there is none or it is not known.
func (s *search) ends() (*visibilityv1alpha1.Remedy, *metav1.Time) {
	byAmount := func(a, b int64, _, _ *scheduler.UnitView) int { return cmp.Compare(b, a) }
	ahead, found := s.fewest(func(ahead int) bool {
		ended := s.victims(ahead, byAmount)
		w := s.first.world
		w.ended = ended
		root, _, _ := strings.Cut(s.group.Path(), "/") // what ends frees quota up to the root
		return ended != nil && s.admitted(s.unit, root, w)
	})
	if !found {
		return nil, nil
	}
	ended := s.victims(ahead, byAmount)
	remedy := &visibilityv1alpha1.Remedy{Type: visibilityv1alpha1.EndUnits, Ahead: int32(ahead)}
	keys := slices.SortedFunc(maps.Keys(ended), func(a, b int32) int { return strings.Compare(s.view.Units[a].Key, s.view.Units[b].Key) })
	for _, i := range keys {
		if s.access.Units(namespaceOf(s.view.Units[i].Key)) {
			remedy.Units = append(remedy.Units, s.summary(i))
		} else {
			remedy.HiddenUnits++
		}
	}
	remedy.Message = s.endMessage(remedy)
	if ahead > 0 {
		remedy.Message += fmt.Sprintf("; that is enough for the %s ahead as well", units(ahead))
	}
	return remedy, s.until(ahead)
}

// topmost returns the path of the topmost node at which anything is missing: units of all queues below it compete for
// what is added there.
func (s *search) topmost(needs []need) string {
	top := s.group.Path()
	for _, n := range needs {
		if strings.HasPrefix(top, n.refusal.Node+"/") {
			top = n.refusal.Node
		}
	}
	return top
}

func (s *search) endMessage(remedy *visibilityv1alpha1.Remedy) string {
	const mostNames = 3
	var names []string
	for _, u := range remedy.Units[:min(len(remedy.Units), mostNames)] {
		names = append(names, u.Namespace+"/"+u.Name)
	}
	more := len(remedy.Units) - len(names) + int(remedy.HiddenUnits)
	switch {
	case len(names) == 0:
		return s.then(fmt.Sprintf("%s that you may not list end", counted(more)))
	case more > 0:
		return s.then(fmt.Sprintf("%s and %d more end", strings.Join(names, ", "), more))
	case len(names) == 1:
		return s.then(names[0] + " ends")
	default:
		return s.then(strings.Join(names, ", ") + " end")
	}
}

func counted(n int) string {
	if n == 1 {
		return "1 unit"
	}
	return fmt.Sprintf("%d units", n)
}

// victims returns units that hold enough for the unit and the first units ahead of it, in the order of the function,
// none of which could be left out; nil if all together do not.
func (s *search) victims(ahead int, order func(a, b int64, u, v *scheduler.UnitView) int) map[int32]bool {
	needs := s.needs(ahead)
	left := make([]int64, len(needs))
	for j, n := range needs {
		if n.refusal.Final() {
			return nil // it would not fit even if nothing else held quota
		}
		left[j] = n.missing
	}
	amounts := map[int32][]int64{}
	for i := range s.view.Units {
		u := &s.view.Units[i]
		if u.Charge == nil || u.Phase == scheduler.Waiting {
			continue
		}
		var by []int64
		for j, n := range needs {
			if amount := s.view.Backend.Holds(n.refusal, u.Path, u.Charge); amount > 0 {
				if by == nil {
					by = make([]int64, len(needs))
				}
				by[j] = amount
			}
		}
		if by != nil {
			amounts[int32(i)] = by
		}
	}
	chosen := map[int32]bool{}
	for j := range needs {
		candidates := slices.SortedFunc(maps.Keys(amounts), func(a, b int32) int {
			u, v := &s.view.Units[a], &s.view.Units[b]
			return cmp.Or(order(amounts[a][j], amounts[b][j], u, v), strings.Compare(u.Key, v.Key))
		})
		for _, i := range candidates {
			if left[j] <= 0 {
				break
			}
			if amounts[i][j] == 0 || chosen[i] {
				continue
			}
			chosen[i] = true
			for k, amount := range amounts[i] {
				left[k] -= amount
			}
		}
		if left[j] > 0 || len(chosen) > mostToEnd {
			return nil
		}
	}
	// A unit that was chosen for one limit may make another one superfluous.
	for _, i := range slices.SortedFunc(maps.Keys(chosen), func(a, b int32) int {
		return cmp.Or(slices.Compare(amounts[a], amounts[b]), strings.Compare(s.view.Units[a].Key, s.view.Units[b].Key))
	}) {
		spare := true
		for j, amount := range amounts[i] {
			spare = spare && left[j]+amount <= 0
		}
		if spare {
			delete(chosen, i)
			for j, amount := range amounts[i] {
				left[j] += amount
			}
		}
	}
	if len(chosen) == 0 {
		return nil
	}
	return chosen
}

// until returns when enough units have ended for the unit and those ahead of it, by their maximum execution times; nil if
// that is not known.
func (s *search) until(ahead int) *metav1.Time {
	ended := s.victims(ahead, func(_, _ int64, u, v *scheduler.UnitView) int {
		a, b := u.EndsAt(), v.EndsAt()
		switch {
		case a.IsZero() || b.IsZero():
			return cmp.Compare(asInt(a.IsZero()), asInt(b.IsZero()))
		default:
			return a.Compare(b)
		}
	})
	if ended == nil {
		return nil
	}
	var last time.Time
	for i := range ended {
		at := s.view.Units[i].EndsAt()
		if at.IsZero() {
			return nil
		}
		if at.After(last) {
			last = at
		}
	}
	return timeOf(last.Add(time.Second - 1))
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
