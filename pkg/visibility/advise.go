package visibility

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
)

const (
	// newName is the name of a new unit. No real unit can have it.
	newName = "/new"
	// furthest is the last position in a queue at which the start of a new unit is predicted.
	furthest = 1000
)

// Trial is what would happen to a new unit.
type Trial struct {
	// Queue is the name of its queue; empty if it has none.
	Queue string
	// Length is as in Waiter.
	Length time.Duration
	// Start is when it would start, NotKnown if that is not known.
	Start simulator.Start
	// AllPods is what would happen if the unit waited for all its pods; nil if it starts with all of them anyway, or its
	// start is not known.
	AllPods *Trial

	model     *Model
	namespace string
	// few is true if too few jobs of the queue have ended to predict how long others run.
	few bool
}

// Try submits a new unit to a copy of the core and plays the queues forward, like Starts. The error is for the caller.
func (m *Model) Try(namespace string, spec *v1alpha1.QueueUnitSpec, left RunTimes) (*Trial, error) {
	switch {
	case m.view.Missing != nil:
		return nil, errors.New(m.view.Missing.Message())
	case m.Read == nil || m.view.Backend == nil:
		return nil, errors.New("the quota backend of this cluster cannot tell what would happen to a new unit")
	}
	unit, err := m.newUnit(namespace, spec)
	if err != nil {
		return nil, err
	}
	t := m.try(unit, left)
	if t.Start.Pods > 0 {
		unit.Elastic = nil
		t.AllPods = m.try(unit, left)
	}
	return t, nil
}

// newUnit reads a unit as if it had just been created.
func (m *Model) newUnit(namespace string, spec *v1alpha1.QueueUnitSpec) (scheduler.Unit, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	unit := &v1alpha1.QueueUnit{Spec: *spec, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: newName, UID: newName, ResourceVersion: "1",
		CreationTimestamp: metav1.NewTime(m.view.At)}}
	unit.Spec.SubmissionTime = nil
	return m.Read(unit)
}

func (m *Model) try(unit scheduler.Unit, left RunTimes) *Trial {
	view := *m.view
	view.Units = append(slices.Clip(view.Units), scheduler.UnitView{Key: unit.Key, UID: unit.UID, QuotaName: unit.QuotaName, Kind: unit.Kind, Queue: -1,
		Priority: unit.Priority, MaxSeconds: unit.MaxSeconds, Expected: unit.Expected, Submitted: unit.Submitted, Demand: unit.Demand})
	u := &view.Units[len(view.Units)-1]
	t := &Trial{namespace: namespaceOf(unit.Key), model: m.withView(&view), Start: simulator.Start{After: simulator.NotKnown}}
	if why := m.keptOut(u, &unit); why != nil {
		u.Held, u.Refusal = true, why
	}
	if u.Queue >= 0 {
		t.Queue, t.Length = view.Queues[u.Queue].Name, t.model.length(u)
	}
	// Compute what answers need about all units here, so that its time counts, and with the refusal that is known by
	// then.
	defer func() { t.model.index(); t.model.places(); t.model.oldest() }()
	if u.Held {
		return t
	}
	// Do not compute the lines of t.model before it is known why the unit waits.
	played := m.withView(&view)
	played.lines = m.lines
	seen := *u
	m.mutex.Lock()
	names := view.Names.Clone()
	m.mutex.Unlock()
	starts := played.play(func(queue string, declared forecast.Declared, ran time.Duration) (time.Duration, bool) {
		predicted, known := left(queue, declared, ran)
		t.few = t.few || !known && queue == t.Queue
		return predicted, known
	}, map[string]int{t.Queue: furthest}, &unit, func(core *scheduler.Scheduler) {
		for _, now := range core.View(view.At, names).Units {
			if now.Key == unit.Key {
				now.Queue, seen = u.Queue, now
			}
		}
	})
	*u = seen
	if start, known := starts[unit.UID]; known && t.model.places()[len(view.Units)-1] <= furthest {
		t.Start = start
	}
	return t
}

// withView returns a model of a view that shares the backend and the names.
func (m *Model) withView(view *scheduler.View) *Model {
	with := New(view, m.kinds, m.namespace)
	with.mutex = m.mutex
	return with
}

// keptOut sets the queue of a new unit, and returns why it is not tried, whatever it requests; nil if it is tried.
func (m *Model) keptOut(u *scheduler.UnitView, unit *scheduler.Unit) *quota.Refusal {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	group, refusal := m.view.Backend.Place(namespaceOf(unit.Key), unit.QuotaName)
	for q := range m.view.Queues {
		if group != nil && m.view.Queues[q].Name == group.Queue() {
			u.Queue, u.Priority = int32(q), m.view.Queues[q].Settings.MaxPriority.Of(unit.Priority)
		}
	}
	return cmp.Or(unit.Held, refusal, m.view.Off[unit.Kind])
}

// Why returns why the unit would wait. The phase is Dequeued if it would start. The error is for the caller.
func (t *Trial) Why(access Access) (*visibilityv1alpha1.QueueUnitReviewStatus, error) {
	answer, err := t.model.Why(t.namespace, newName, access)
	if err == nil && t.few && t.Start.After == simulator.NotKnown && answer.Reason != "" && !answer.Reason.NeedsAction() {
		answer.Message += fmt.Sprintf("; no estimate yet: fewer than %d jobs of this queue without a declared run time have ended", forecast.Fewest)
	}
	if err != nil || t.AllPods == nil {
		return answer, err
	}
	whole, err := t.AllPods.model.Why(t.namespace, newName, access)
	if err != nil {
		return nil, err
	}
	answer.StartPods, answer.WithAllPods = t.Start.Pods, &visibilityv1alpha1.AllPodsAnswer{Reason: whole.Reason, Message: whole.Message}
	return answer, nil
}
