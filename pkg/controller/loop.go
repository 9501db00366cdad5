package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/tolerant"
)

// PublishInterval is the least time between two writes of the status of a Queue
// or of the tree.
const PublishInterval = 5 * time.Second

// loop owns the core and everything that the core's decisions rest on. All of it
// is used by one goroutine.
type loop struct {
	clock  clock.Clock
	logger klog.Logger
	core   *scheduler.Scheduler
	names  *resources.Names
	reader *unitReader
	forest *forest

	inbox     *inbox
	applier   *applier
	publisher *publisher
	emit      func(treeEvent)
	// unreadable units that were told of.
	unreadable unreadableUnits
	// check proves the core's invariants after every input.
	check bool

	now       time.Time
	dirty     bool
	publishAt time.Time
	broken    error
}

// run takes in what comes until the context ends, or an invariant is found broken.
func (l *loop) run(ctx context.Context) error {
	// The process before this one may have written a status just now.
	l.publishAt = l.clock.Now().Add(PublishInterval)
	timer := l.clock.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.inbox.ready:
		case <-timer.C():
		}
		wake := l.turn()
		if l.broken != nil {
			return l.broken
		}
		timer.Stop()
		if !wake.IsZero() {
			timer.Reset(max(wake.Sub(l.clock.Now()), 0))
		}
	}
}

// turn takes in everything that is there, and acts on it once.
func (l *loop) turn() (wake time.Time) {
	l.now = l.clock.Now()
	for _, take := range l.inbox.take() {
		take(l)
		l.prove()
	}
	plan, wake := l.core.Next(l.now)
	l.prove()
	l.applier.add(plan)
	return earlier(wake, l.publish())
}

func (l *loop) apply(e scheduler.Event) {
	l.dirty = true
	l.core.Apply(l.now, e)
}

func (l *loop) prove() {
	if !l.check || l.broken != nil {
		return
	}
	if err := l.core.Check(); err != nil {
		l.broken = fmt.Errorf("invariant broken: %w", err)
	}
}

// publish hands the figures to the publisher, at most once per interval, and
// tells when it has to be called again.
func (l *loop) publish() time.Time {
	if !l.dirty {
		return time.Time{}
	}
	if l.now.Before(l.publishAt) {
		return l.publishAt
	}
	l.dirty, l.publishAt = false, l.now.Add(PublishInterval)
	l.publisher.set(l.core.QueueNames(), l.core.ChangedQueues(l.now), l.treeFigures())
	return time.Time{}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// Inputs from the informers.

func unitSeen(unit tolerant.Object) input {
	return func(l *loop) {
		l.unreadable.see(l.logger, unit)
		u, err := l.reader.readAny(unit)
		if err != nil {
			l.logger.Error(err, "Cannot read a unit; leaving it alone")
			return
		}
		l.apply(scheduler.UnitChanged{Unit: u})
	}
}

func unitGone(key string, uid string) input {
	return func(l *loop) {
		l.unreadable.gone(key)
		l.apply(scheduler.UnitGone{Key: key, UID: uid})
	}
}

func treeSeen(key string, object *unstructured.Unstructured) input {
	return func(l *loop) { l.changeTrees(l.forest.set(key, object)) }
}

// treesListed is told once all trees that there were at the start have been seen.
func treesListed(l *loop) { l.changeTrees(l.forest.start()) }

func (l *loop) changeTrees(change treeChange) {
	if change.quota != nil {
		l.logger.Info("Quota changed", "inForce", change.quota.Backend != nil)
		l.apply(*change.quota)
	}
	for _, e := range change.events {
		l.emit(e)
	}
	l.dirty = true
}

func queueSeen(q *schedulingv1alpha1.Queue) input {
	return func(l *loop) {
		l.apply(queueSettings(q))
	}
}

func queueSettings(q *schedulingv1alpha1.Queue) scheduler.QueueChanged {
	e := scheduler.QueueChanged{Queue: q.Name, Policy: queue.Policy(q.Spec.Policy), Rank: q.Spec.Priority}
	if q.Spec.MaxPriority != nil {
		e.MaxPriority = scheduler.Cap{Set: true, Value: *q.Spec.MaxPriority}
	}
	switch q.Spec.Stop {
	case schedulingv1alpha1.StopHold:
		e.Stop = scheduler.Hold
	case schedulingv1alpha1.StopDrain:
		e.Stop = scheduler.Drain
	}
	return e
}

func queueGone(name string) input {
	return func(l *loop) {
		l.apply(scheduler.QueueChanged{Queue: name})
		l.publisher.lookAt(name) // it is made again when its group is still there
	}
}
