package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// followRenames moves the settings of Queues whose groups are renamed in a new quota. The core must know them before
// the quota: a stopped queue must not admit until its new Queue exists. While there is no quota, the last groups count.
func (l *loop) followRenames(now quota.Backend) {
	named, is := now.(interface{ Members() map[string][]string })
	if !is {
		return
	}
	before := l.members
	l.members = named.Members()
	renamed := renames(before, l.members)
	for _, old := range slices.Sorted(maps.Keys(renamed)) {
		queue := l.publisher.known(old)
		if m := l.publisher.moveOf(old); queue == nil && m != nil { // it is renamed again
			queue = m.from
		}
		name := renamed[old]
		if queue == nil || equality.Semantic.DeepEqual(queue.Spec, schedulingv1alpha1.QueueSpec{}) || l.publisher.known(name) != nil {
			continue
		}
		moved := &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: queue.Spec}
		l.apply(codec.Settings(moved))
		l.publisher.move(queue, moved)
	}
}

// renames returns the new names of the queues whose groups have other names, but the same namespaces, if no other
// group that is removed or added has these namespaces.
func renames(before, now map[string][]string) map[string]string {
	gone, added := groupsBy(before, now), groupsBy(now, before)
	renamed := map[string]string{}
	for namespaces, queues := range gone {
		if others := added[namespaces]; len(queues) == 1 && len(others) == 1 {
			renamed[queues[0]] = others[0]
		}
	}
	return renamed
}

// groupsBy returns the queues that are not in the others, by their namespaces.
func groupsBy(members, others map[string][]string) map[string][]string {
	by := map[string][]string{}
	for queue, namespaces := range members {
		if _, both := others[queue]; !both {
			key := strings.Join(namespaces, " ")
			by[key] = append(by[key], queue)
		}
	}
	return by
}

// queueMove is a Queue to create, with the settings of one to delete.
type queueMove struct{ from, to *schedulingv1alpha1.Queue }

// move records that the settings of a Queue move to another one.
func (p *publisher) move(from, to *schedulingv1alpha1.Queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moves = slices.DeleteFunc(p.moves, func(m queueMove) bool { return m.from.Name == from.Name })
	p.moves = append(p.moves, queueMove{from, to})
}

// moveOf returns the move from or to a Queue; nil if there is none.
func (p *publisher) moveOf(name string) *queueMove {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.moves {
		if m := p.moves[i]; m.from.Name == name || m.to.Name == name {
			return &m
		}
	}
	return nil
}

// moved deletes the Queue whose settings were moved, and reports that. Changes of its settings in the meantime stay.
func (p *publisher) moved(ctx context.Context, m *queueMove, to *schedulingv1alpha1.Queue) error {
	err := p.client.SchedulingV1alpha1().Queues(p.namespace).Delete(ctx, m.from.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.from.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("queue %s, whose settings were moved to %s: %w", m.from.Name, to.Name, err)
	}
	p.forget(m)
	p.report(backend.Notice{About: reference("Queue", to), Type: corev1.EventTypeNormal, Reason: wellknown.EventSettingsMoved,
		Message: fmt.Sprintf("The quota of Queue %s was renamed: its settings were moved to this Queue: %s", m.from.Name, settingsOf(to))})
	return nil
}

// dropped gives up a move if somebody else has created the Queue with other settings, and reports whether it did.
func (p *publisher) dropped(m *queueMove, to *schedulingv1alpha1.Queue) bool {
	if equality.Semantic.DeepEqual(to.Spec, m.to.Spec) {
		return false
	}
	p.forget(m)
	p.lookAt(m.from.Name)
	return true
}

func (p *publisher) forget(m *queueMove) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moves = slices.DeleteFunc(p.moves, func(other queueMove) bool { return other.to.Name == m.to.Name })
}

// reportLost reports that the settings of a Queue have no effect any more.
func (p *publisher) reportLost(queue *schedulingv1alpha1.Queue) {
	p.report(backend.Notice{About: reference("Queue", queue), Type: corev1.EventTypeWarning, Reason: wellknown.EventSettingsUnused,
		Message: fmt.Sprintf("Quota %s does not exist any more, so the settings of this Queue have no effect: %s. Make them in the Queue of another quota, or delete this one.",
			queue.Status.Quota, settingsOf(queue))})
}

func settingsOf(queue *schedulingv1alpha1.Queue) string {
	text, err := json.Marshal(queue.Spec)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
