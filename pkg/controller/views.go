package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/visibility"
)

// viewCost limits the cost of views: after a view, the loop waits viewCost times as long as it took. So views use at
// most 2 % of its time. With few units, each question gets its own view.
const viewCost = 50

// ErrNotDeciding means that this process makes no decisions now and has no state. Another one may.
var ErrNotDeciding = errors.New("kube-queue-controller has just started and has not listed all objects yet; try again in a few seconds")

// Views makes models of the state of the core for other goroutines.
type Views struct {
	clock clock.Clock

	mutex sync.Mutex
	// inbox is the inbox of the loop; nil while the loop makes no decisions.
	inbox *inbox
	// last is the last model, used until stale. made is closed when the next one is ready; nil if none is being made.
	last  *visibility.Model
	stale time.Time
	made  chan struct{}
}

// NewViews returns Views for Config.
func NewViews(clock clock.Clock) *Views { return &Views{clock: clock} }

// Model returns a current or recent model of the state. It waits for the loop until the context is done.
func (v *Views) Model(ctx context.Context) (*visibility.Model, error) {
	v.mutex.Lock()
	switch {
	case v.inbox == nil:
		v.mutex.Unlock()
		return nil, ErrNotDeciding
	case v.last != nil && v.clock.Now().Before(v.stale):
		defer v.mutex.Unlock()
		return v.last, nil
	case v.made == nil:
		v.made = make(chan struct{})
		v.inbox.put(viewAsked(v))
	}
	made := v.made
	v.mutex.Unlock()
	select {
	case <-made:
		v.mutex.Lock()
		defer v.mutex.Unlock()
		if v.last == nil {
			return nil, ErrNotDeciding
		}
		return v.last, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// viewAsked is an input that requests a model after the next decision.
func viewAsked(v *Views) input { return func(l *loop) { l.viewsAsked = append(l.viewsAsked, v) } }

// keepViews is how long a stale model is kept if none is requested.
const keepViews = 10 * time.Second

// forget drops a model that was not requested in a while, because it can be large.
func (v *Views) forget(now time.Time) {
	if v == nil {
		return
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.last != nil && v.made == nil && now.After(v.stale.Add(keepViews)) {
		v.last = nil
	}
}

// makeViews makes the models that were requested.
func (l *loop) makeViews() {
	l.views.forget(l.now)
	for _, v := range l.viewsAsked {
		began := l.clock.Now()
		view := l.core.View(began, l.names)
		model := visibility.New(view, l.reader.Kinds.Names(), l.namespace)
		if copier, is := l.source.(backend.Copier); is && view.Backend != nil {
			reader := l.reader
			reader.Demand = copier.DemandIn(view.Names, view.Backend)
			model.Read = func(unit *v1alpha1.QueueUnit) (scheduler.Unit, error) { return reader.ReadComplete(unit) }
		}
		now := l.clock.Now()
		v.set(model, now.Add(viewCost*now.Sub(began)))
	}
	clear(l.viewsAsked)
	l.viewsAsked = l.viewsAsked[:0]
}

func (v *Views) set(model *visibility.Model, stale time.Time) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.last, v.stale = model, stale
	v.done()
}

// done releases the callers that wait for a model.
func (v *Views) done() {
	if v.made != nil {
		close(v.made)
		v.made = nil
	}
}

// start sends questions to the inbox of a loop until stop is called.
func (v *Views) start(inbox *inbox) (stop func()) {
	if v == nil {
		return func() {}
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.inbox = inbox
	return func() {
		v.mutex.Lock()
		defer v.mutex.Unlock()
		v.inbox, v.last = nil, nil
		v.done()
	}
}
