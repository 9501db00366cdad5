package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// publisher creates and deletes the Queue objects, writes their status, and lets the source of the quota write how
// much is used. The loop sets the wanted state. Only changes are written.
type publisher struct {
	client *clientset.Clientset
	// queues are the Queues of the namespace.
	queues    cache.Store
	namespace string
	clock     clock.Clock
	// every is the shortest time between two writes of the status of an object.
	every time.Duration

	mu sync.Mutex
	// wanted are the counts of all queues that must exist.
	wanted map[string]scheduler.QueueStats
	// stale are the names of the queues to compare with wanted.
	stale map[string]bool
	// show writes how much is used; nil if there is nothing to write.
	show func(context.Context) error
	// moves are the pending moves of settings from one Queue to another, by the name of the new one.
	moves map[string]*queueMove
	// report reports an event.
	report func(backend.Notice)
	ready  chan struct{}
}

func newPublisher(client *clientset.Clientset, queues cache.Store, namespace string, clock clock.Clock, every time.Duration) *publisher {
	return &publisher{client: client, queues: queues, namespace: namespace, clock: clock, every: every,
		wanted: map[string]scheduler.QueueStats{}, stale: map[string]bool{}, moves: map[string]*queueMove{}, ready: make(chan struct{}, 1), report: func(backend.Notice) {}}
}

// set sets the wanted state: the names of all queues, the counts of those that have changed, and
// the function that writes how much is used.
func (p *publisher) set(names []string, changed []scheduler.QueueStats, show func(context.Context) error) {
	p.mu.Lock()
	for _, stats := range changed {
		p.wanted[stats.Name] = stats
		p.stale[stats.Name] = true
	}
	keep := map[string]bool{}
	for _, name := range names {
		keep[name] = true
	}
	for name := range p.wanted {
		if !keep[name] {
			delete(p.wanted, name)
			p.stale[name] = true
		}
	}
	p.show = show
	p.mu.Unlock()
	follow.Wake(p.ready)
}

// known returns the cached Queue; nil if it does not exist.
func (p *publisher) known(name string) *schedulingv1alpha1.Queue {
	object, _, _ := p.queues.GetByKey(p.namespace + "/" + name) // a cache does not fail
	queue, _ := object.(*schedulingv1alpha1.Queue)
	return queue
}

// lookAt marks a queue as stale.
func (p *publisher) lookAt(name string) {
	p.mu.Lock()
	p.stale[name] = true
	p.mu.Unlock()
}

func (p *publisher) run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for {
		// The interval starts at the end of a round, because the object that this round wrote last
		// may be the first one of the next round. The previous process may have just written a status, too.
		select {
		case <-ctx.Done():
			return
		case <-p.clock.After(p.every):
		}
		select {
		case <-ctx.Done():
			return
		case <-p.ready:
		}
		if p.publish(ctx, logger) {
			follow.Wake(p.ready)
		}
	}
}

// publish brings the objects to the wanted state, and reports whether it needs another round.
func (p *publisher) publish(ctx context.Context, logger klog.Logger) (again bool) {
	p.mu.Lock()
	names := slices.Sorted(maps.Keys(p.stale))
	p.stale = map[string]bool{}
	wanted := maps.Clone(p.wanted)
	show := p.show
	p.mu.Unlock()

	for _, name := range names {
		stats, exists := wanted[name]
		var err error
		if exists {
			err = p.keep(ctx, stats)
		} else {
			err = p.retire(ctx, name)
		}
		if err != nil && ctx.Err() == nil {
			logger.Error(err, "Cannot update the Queue; trying again", "queue", name)
			p.lookAt(name)
		}
	}
	p.mu.Lock()
	again = len(p.stale) > 0
	p.mu.Unlock()
	if show == nil {
		return again
	}
	if err := show(ctx); err != nil && ctx.Err() == nil {
		logger.Error(err, "Cannot write the status of the quota; trying again")
		again = true
	}
	return again
}

// keep creates the Queue if it does not exist, and updates its status.
func (p *publisher) keep(ctx context.Context, stats scheduler.QueueStats) error {
	api := p.client.SchedulingV1alpha1().Queues(p.namespace)
	queue := p.known(stats.Name)
	if queue == nil {
		wanted := &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: stats.Name}}
		if move := p.moveTo(stats.Name); move != nil {
			wanted = move.to
		}
		var err error
		queue, err = api.Create(ctx, wanted, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // the cache is outdated
			p.lookAt(stats.Name)
			return nil
		}
		if err != nil {
			return fmt.Errorf("queue %s: %w", stats.Name, err)
		}
	}
	if move := p.moveTo(stats.Name); move != nil { // it may have been dropped or changed in the meantime
		if err := p.moved(ctx, move, queue); err != nil {
			return err
		}
	}
	status := schedulingv1alpha1.QueueStatus{
		Policy: schedulingv1alpha1.QueuePolicy(stats.Policy.String()), Quota: stats.Quota,
		Pending: int32(stats.Pending), Reserved: int32(stats.Reserved),
		Dequeued: int32(stats.Dequeued), Running: int32(stats.Running),
		HeadReason: stats.HeadReason, HighestPriority: stats.HighestPriority,
	}
	if equality.Semantic.DeepEqual(queue.Status, status) {
		return nil
	}
	// Releases up to 0.2.0 wrote a unit name to head. Remove it in case their CRD is still installed.
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"policy": status.Policy, "quota": status.Quota, "pending": status.Pending, "reserved": status.Reserved,
		"dequeued": status.Dequeued, "running": status.Running,
		"head": nil, "headReason": lifecycle.OrNull(string(status.HeadReason)), "highestPriority": status.HighestPriority,
	}})
	if err != nil {
		return fmt.Errorf("queue %s: %w", stats.Name, err)
	}
	if _, err := api.Patch(ctx, stats.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("queue %s: status: %w", stats.Name, err)
	}
	return nil
}

// retire deletes the Queue of a group that no longer exists. If an administrator has set something in its spec, retire
// only clears the status and keeps the settings for when the group exists again. It ignores a Queue that never had a
// group, because someone else created it.
func (p *publisher) retire(ctx context.Context, name string) error {
	queue := p.known(name)
	if queue == nil || queue.Status.Quota == "" || p.moveFrom(name) != nil {
		return nil
	}
	api := p.client.SchedulingV1alpha1().Queues(p.namespace)
	if equality.Semantic.DeepEqual(queue.Spec, schedulingv1alpha1.QueueSpec{}) {
		// The preconditions protect settings that are made in the meantime.
		err := api.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &queue.UID, ResourceVersion: &queue.ResourceVersion}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("queue %s: %w", name, err)
		}
		return nil
	}
	patch := []byte(`{"status":{"policy":null,"quota":null,"pending":0,"reserved":0,"dequeued":0,"running":0,"head":null,"headReason":null,"highestPriority":null}}`)
	_, err := api.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("queue %s: status: %w", name, err)
	}
	p.reportLost(queue)
	return nil
}
