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
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// followRenames moves the settings of Queues whose groups a new quota renames. The core must know them before the
// quota: a stopped queue must not admit until its new Queue exists. The old groups are those of the last quota or, at
// the start, of the earlier process.
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
		if m := l.publisher.moveTo(old); queue == nil && m != nil { // it is renamed again
			queue = m.from
		}
		name := renamed[old]
		if queue == nil || equality.Semantic.DeepEqual(queue.Spec, schedulingv1alpha1.QueueSpec{}) {
			continue
		}
		// If the new Queue has the same settings, an earlier move only has to delete the old one.
		if other := l.publisher.known(name); other == nil || equality.Semantic.DeepEqual(other.Spec, queue.Spec) {
			l.moveSettings(queue, name)
		}
	}
}

// moving reports whether moves are pending. Another goroutine calls it.
func (l *loop) moving() bool {
	l.taking.Lock()
	defer l.taking.Unlock()
	l.publisher.mu.Lock()
	defer l.publisher.mu.Unlock()
	return len(l.publisher.moves) > 0
}

// moveSettings plans to move the settings of a Queue, as they are now, to another one.
func (l *loop) moveSettings(from *schedulingv1alpha1.Queue, name string) {
	to := &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: from.Spec}
	if l.publisher.known(name) == nil {
		l.apply(codec.Settings(to))
	}
	l.publisher.move(from, to)
}

// dropMoves gives up the moves from Queues whose groups exist again, and to Queues whose groups no longer exist. The
// core forgets settings that no Queue has: a later group with the same name is a different one.
func (l *loop) dropMoves() {
	for _, name := range l.publisher.dropMoves(l.members) {
		if l.publisher.known(name) == nil {
			l.apply(scheduler.QueueChanged{Queue: name})
		}
	}
}

// renames returns the new names of renamed queues. A group is renamed if exactly one group is removed and one added
// with the same namespaces.
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
	p.moves[to.Name] = &queueMove{from, to}
}

// moveTo returns the move to a Queue; nil if there is none.
func (p *publisher) moveTo(name string) *queueMove {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moves[name]
}

// moveFrom returns the move from a Queue; nil if there is none.
func (p *publisher) moveFrom(name string) *queueMove {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.moves {
		if m.from.Name == name {
			return m
		}
	}
	return nil
}

// dropMoves gives up each move whose old group exists again or whose new group does not exist, and returns the names of
// the new Queues.
func (p *publisher) dropMoves(groups map[string][]string) (dropped []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.moves)) {
		from := p.moves[name].from.Name
		_, again := groups[from]
		if _, exists := groups[name]; again || !exists {
			delete(p.moves, name)
			// If the old group exists again, its Queue is compared once its counts are known.
			if delete(p.stale, from); !again {
				p.stale[from] = true
			}
			dropped = append(dropped, name)
		}
	}
	return dropped
}

// moved deletes the Queue whose settings were moved, and reports that. It gives up the move if the settings of the new
// Queue differ, because the old ones have changed or someone else created it.
func (p *publisher) moved(ctx context.Context, m *queueMove, to *schedulingv1alpha1.Queue) error {
	if !equality.Semantic.DeepEqual(to.Spec, m.to.Spec) {
		p.forget(m)
		p.lookAt(m.from.Name)
		return nil
	}
	// After a conflict, the next round tries again.
	err := p.client.SchedulingV1alpha1().Queues(p.namespace).Delete(ctx, m.from.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.from.UID, ResourceVersion: &m.from.ResourceVersion}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("queue %s, whose settings were moved to %s: %w", m.from.Name, to.Name, err)
	}
	p.forget(m)
	p.report(backend.Notice{About: reference("Queue", to), Type: corev1.EventTypeNormal, Reason: wellknown.EventSettingsMoved,
		Message: fmt.Sprintf("The quota of Queue %s was renamed: its settings were moved to this Queue: %s", m.from.Name, settingsOf(to))})
	return nil
}

func (p *publisher) forget(m *queueMove) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.moves, m.to.Name)
}

// reportLost reports that the settings of a Queue no longer have an effect.
func (p *publisher) reportLost(queue *schedulingv1alpha1.Queue) {
	p.report(backend.Notice{About: reference("Queue", queue), Type: corev1.EventTypeWarning, Reason: wellknown.EventSettingsUnused,
		Message: fmt.Sprintf("Quota %s no longer exists, so the settings of this Queue have no effect: %s. Move them to the Queue of another quota, or delete this Queue.",
			queue.Status.Quota, settingsOf(queue))})
}

func settingsOf(queue *schedulingv1alpha1.Queue) string {
	text, err := json.Marshal(queue.Spec)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
