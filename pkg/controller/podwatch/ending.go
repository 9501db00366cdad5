package podwatch

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// ending reports when the grace period of a deleted pod ends. On a lost node, the pod may exist forever after that.
type ending struct {
	clock clock.Clock
	over  func(uid string)
	// pods are the pods by UID. Only the goroutine that decides uses them.
	pods map[string]*pod
	due  workqueue.TypedDelayingInterface[string]
}

func newEnding(c clock.Clock, over func(string)) *ending {
	config := workqueue.TypedDelayingQueueConfig[string]{}
	if ticking, is := c.(clock.WithTicker); is {
		config.Clock = ticking
	}
	return &ending{clock: c, over: over, pods: map[string]*pod{}, due: workqueue.NewTypedDelayingQueueWithConfig(config)}
}

func (e *ending) watch(p *pod) {
	uid := string(p.UID)
	before := e.pods[uid]
	e.pods[uid] = p
	if left := p.goneAt.Sub(e.clock.Now()); left > 0 && (before == nil || !before.goneAt.Equal(p.goneAt)) {
		e.due.AddAfter(uid, left)
	}
}

func (e *ending) forget(p *pod) { delete(e.pods, string(p.UID)) }

func (e *ending) run(ctx context.Context) {
	go func() {
		<-ctx.Done()
		e.due.ShutDown()
	}()
	for uid, shutdown := e.due.Get(); !shutdown; uid, shutdown = e.due.Get() {
		e.over(uid)
		e.due.Done(uid)
	}
}
