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

// first is what must be done before the quota matters: an object to change, or a time to wait for.
type first struct {
	visibilityv1alpha1.Remedy
	world
	// alone is true if it is not known what follows. Nothing is added to the remedy then.
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
	f := m.firstOf(i, r, access)
	if f.alone || m.view.Backend == nil || m.view.Units[i].Queue < 0 {
		if f.Message != "" {
			answer.WouldAdmit = append(answer.WouldAdmit, f.Remedy)
		}
		return
	}
	searched := m.remediesAfter(answer, i, r, f, access)
	if len(answer.WouldAdmit) == 0 && f.Message != "" {
		if searched {
			f.Message += "; after that, the unit still waits for quota"
		} else {
			f.Message += "; after that, the unit may wait for quota"
		}
		answer.WouldAdmit = append(answer.WouldAdmit, f.Remedy)
	}
}

// remediesAfter adds what would admit a unit after the first step, if it needs more than that. It returns false if it
// did not search.
func (m *Model) remediesAfter(answer *visibilityv1alpha1.QueueUnitReviewStatus, i int32, r *quota.Refusal, f first, access Access) (searched bool) {
	s := &search{Model: m, unit: i, first: f, access: access}
	if !s.prepare() {
		return false
	}
	if f.Message != "" && m.admitted(i, s.group.Path(), f.world) {
		answer.WouldAdmit = append(answer.WouldAdmit, f.Remedy)
		return true
	}
	if r.IsLimit() && r.Impossible() {
		answer.WouldAdmit = append(answer.WouldAdmit, m.lower(i, s.group)...)
	}
	if r.Reason == wellknown.ReasonBorrowingPaused {
		answer.WouldAdmit = append(answer.WouldAdmit, m.whilePaused(i, s.group, r, access)...)
	}
	if remedy := m.untilReclaimed(&m.view.Units[i], r); remedy != nil && f.Message == "" {
		answer.WouldAdmit = append(answer.WouldAdmit, *remedy)
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
	return true
}

func latest(a, b *metav1.Time) *metav1.Time {
	if a == nil || a.Before(b) {
		return b
	}
	return a
}

// lower returns the remedy to lower the request to what all limits of the quota allow when nothing else is used; none
// if a limit allows nothing.
func (m *Model) lower(i int32, group quota.Group) []visibilityv1alpha1.Remedy {
	smallest := map[string]*quota.Refusal{}
	for _, r := range m.view.Backend.Exceeds(group, m.view.Units[i].Demand) {
		if least := smallest[r.Resource]; least == nil || r.Limit < least.Limit {
			smallest[r.Resource] = r
		}
	}
	remedy := visibilityv1alpha1.Remedy{Type: visibilityv1alpha1.LowerRequest}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(smallest)) {
		r := smallest[name]
		if r.Limit <= 0 {
			return nil
		}
		from, to := resources.Format(name, r.Asked), resources.Format(name, r.Limit)
		remedy.Changes = append(remedy.Changes, visibilityv1alpha1.QuotaChange{Field: "request", Resource: name, From: from, To: to})
		parts = append(parts, fmt.Sprintf("at most %s %s", to, name))
	}
	if len(parts) == 0 {
		return nil
	}
	remedy.Message = fmt.Sprintf("request %s, so that the unit can fit once enough quota is unused", strings.Join(parts, " and "))
	return []visibilityv1alpha1.Remedy{remedy}
}

// firstOf returns what must be done first for a unit that waits for r. Its message is empty if the unit only has to
// wait for quota. A unit shows one reason, but the message includes what it would wait for after that.
func (m *Model) firstOf(i int32, r *quota.Refusal, access Access) first {
	u := &m.view.Units[i]
	var steps []visibilityv1alpha1.Remedy
	add := func(kind visibilityv1alpha1.RemedyType, message string) {
		steps = append(steps, visibilityv1alpha1.Remedy{Type: kind, Message: message})
	}
	alone := func(kind visibilityv1alpha1.RemedyType, message string) first {
		return first{Remedy: visibilityv1alpha1.Remedy{Type: kind, Message: message}, alone: true}
	}
	switch r.Reason {
	case wellknown.ReasonInactive:
		if m.kind(u.Kind) == "" {
			add(visibilityv1alpha1.ChangeObject, "set spec.active of the unit to true")
		} else {
			add(visibilityv1alpha1.ChangeObject, fmt.Sprintf("set annotation %s of the job to \"true\"", wellknown.ActiveAnnotation))
		}
	case wellknown.ReasonSuspendedByUser:
		add(visibilityv1alpha1.ChangeObject,
			"set the suspend field of the job to false, or, where its mark is the annotation, annotation "+wellknown.SuspendAnnotation+" to \"true\"")
	case wellknown.ReasonInvalidQuotaTree:
		return alone(visibilityv1alpha1.ChangeObject, fmt.Sprintf(
			"an administrator corrects ElasticQuotaTree %s: %s; the unit is then tried, and needs a quota that lists its namespace and has room", r.Node, r.Detail))
	case wellknown.ReasonNoQuota, wellknown.ReasonQuotaNotAllowed, wellknown.ReasonKindNotQueued, wellknown.ReasonTerminating:
		_, action, _ := strings.Cut(r.Message(), "; ") // the message of the answer has the rest
		return alone(visibilityv1alpha1.ChangeObject, cmp.Or(action, r.Message()))
	case wellknown.ReasonInvalidRequest, wellknown.ReasonAdmissionCheckRejected:
		return alone(visibilityv1alpha1.ChangeObject, "change the job as the message says")
	case wellknown.ReasonJobChanged:
		return alone(visibilityv1alpha1.Wait,
			"job-extensions writes the new request into the unit, which takes a moment; the unit is then tried with it, and may lack quota"+m.asksAgain(u))
	case wellknown.ReasonPreempting:
		return first{Remedy: m.untilStopped(u, access), alone: true}
	}
	f := first{}
	if of := m.stepsOfQueue(u); len(of) > 0 {
		steps = append(steps, of...)
		f.open = map[int32]bool{u.Queue: true}
	}
	if u.RequeueAt().After(m.view.At) {
		add(visibilityv1alpha1.Wait, "the unit is tried again at "+u.RequeueAt().UTC().Format(time.RFC3339)+m.asksAgain(u))
	}
	for n, step := range steps {
		if n == 0 {
			f.Remedy = step
			continue
		}
		f.Message += ", and " + step.Message
		f.Command = "" // it would make only a part of the change
		if step.Type == visibilityv1alpha1.ChangeObject {
			f.Type = step.Type
		}
	}
	return f
}

// stepsOfQueue returns what must be done before the queue of a unit admits units.
func (m *Model) stepsOfQueue(u *scheduler.UnitView) (steps []visibilityv1alpha1.Remedy) {
	if u.Queue < 0 {
		return nil
	}
	q := &m.view.Queues[u.Queue]
	if q.Settings.Stop != scheduler.NotStopped {
		steps = append(steps, visibilityv1alpha1.Remedy{Type: visibilityv1alpha1.ChangeObject,
			Message: fmt.Sprintf("an administrator resumes queue %s: sets its spec.stop to None", q.Name),
			Command: fmt.Sprintf(`kubectl -n %s patch queues.scheduling.x-k8s.io %s --type=merge -p '{"spec":{"stop":"None"}}'`, m.namespace, q.Name)})
	}
	missing := m.missingChecks(u.Queue)
	switch len(missing) {
	case 0:
	case 1:
		steps = append(steps, visibilityv1alpha1.Remedy{Type: visibilityv1alpha1.ChangeObject,
			Message: fmt.Sprintf("an administrator creates AdmissionCheck %s, or removes it from spec.admissionChecks of queue %s", missing[0], q.Name)})
	default:
		steps = append(steps, visibilityv1alpha1.Remedy{Type: visibilityv1alpha1.ChangeObject,
			Message: fmt.Sprintf("an administrator creates AdmissionChecks %s, or removes them from spec.admissionChecks of queue %s", strings.Join(missing, ", "), q.Name)})
	}
	for i := range m.view.Units {
		if v := &m.view.Units[i]; v.Queue == u.Queue && v.Refusal != nil && v.Refusal.Reason == wellknown.ReasonWaitingForPods {
			steps = append(steps, visibilityv1alpha1.Remedy{Type: visibilityv1alpha1.Wait,
				Message: fmt.Sprintf("the pods of the job that queue %s has admitted last become ready, or the job ends", q.Name)})
			break
		}
	}
	return steps
}

// missingChecks returns the admission checks of a queue that do not exist.
func (m *Model) missingChecks(q int32) []string {
	return slices.DeleteFunc(slices.Clone(m.view.Queues[q].Settings.Checks.Names()), func(name string) bool { return slices.Contains(m.view.Checks, name) })
}

// addOthers adds the other units for which a remedy is enough.
func (s *search) addOthers(remedy *visibilityv1alpha1.Remedy, others []int32) {
	ahead := 0
	for _, i := range others {
		ahead += asInt(s.isOwn(i))
	}
	remedy.Ahead = int32(ahead)
	switch elsewhere := len(others) - ahead; {
	case ahead > 0 && elsewhere > 0:
		remedy.Message += fmt.Sprintf("; that is enough for the %s ahead and %s of other queues as well", units(ahead), counted(elsewhere))
	case ahead > 0:
		remedy.Message += fmt.Sprintf("; that is enough for the %s ahead as well", units(ahead))
	case elsewhere > 0:
		remedy.Message += fmt.Sprintf("; that is enough for %s of other queues as well", counted(elsewhere))
	}
}

// then prepends the first step to a message.
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

func counted(n int) string {
	if n == 1 {
		return "1 unit"
	}
	return fmt.Sprintf("%d units", n)
}
