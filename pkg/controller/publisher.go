package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	listers "kube-queue.dev/kube-queue/pkg/generated/listers/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// publisher keeps the Queue objects, writes their status, and has the quota's source
// show how much is used. The loop sets what they should be; what is the same already
// is not written.
type publisher struct {
	client    versioned.Interface
	queues    listers.QueueLister
	namespace string
	clock     clock.Clock

	mu sync.Mutex
	// wanted holds the figures of every queue that there should be.
	wanted map[string]scheduler.QueueStats
	// stale names the queues to look at.
	stale map[string]bool
	// show shows how much is used; nil when there is nothing to show.
	show func(context.Context) error
	// begun: what there should be was set before.
	begun bool
	ready chan struct{}
}

func newPublisher(client versioned.Interface, queues listers.QueueLister, namespace string, clock clock.Clock) *publisher {
	return &publisher{client: client, queues: queues, namespace: namespace, clock: clock,
		wanted: map[string]scheduler.QueueStats{}, stale: map[string]bool{}, ready: make(chan struct{}, 1)}
}

// set says what should be there: all queues by name, the changed ones of which
// are given, and what shows how much is used.
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
	if !p.begun {
		p.begun = true
		p.findLeft(keep)
	}
	p.show = show
	p.mu.Unlock()
	p.wake()
}

// findLeft has the Queues looked at that a process before this one has left: of groups
// that went meanwhile, or of another backend. Called with the lock held.
func (p *publisher) findLeft(keep map[string]bool) {
	known, err := p.queues.Queues(p.namespace).List(labels.Everything())
	if err != nil {
		return // a lister reads its cache, where nothing fails
	}
	for _, queue := range known {
		if !keep[queue.Name] {
			p.stale[queue.Name] = true
		}
	}
}

// lookAt has a queue looked at that may not be as it should.
func (p *publisher) lookAt(name string) {
	p.mu.Lock()
	p.stale[name] = true
	p.mu.Unlock()
}

func (p *publisher) wake() {
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

func (p *publisher) run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.ready:
		}
		if failed := p.publish(ctx, logger); failed {
			p.wake()
		}
		// From the end of a round: what it wrote last may be what the next one, which
		// may be quicker, writes first.
		select {
		case <-ctx.Done():
		case <-p.clock.After(PublishInterval):
		}
	}
}

func (p *publisher) publish(ctx context.Context, logger klog.Logger) (failed bool) {
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
			failed = true
		}
	}
	if show == nil {
		return failed
	}
	if err := show(ctx); err != nil && ctx.Err() == nil {
		logger.Error(err, "Cannot write the status of the quota; trying again")
		failed = true
	}
	return failed
}

// keep makes the Queue where it is missing, and its status what it should be.
func (p *publisher) keep(ctx context.Context, stats scheduler.QueueStats) error {
	api := p.client.SchedulingV1alpha1().Queues(p.namespace)
	queue, err := p.queues.Queues(p.namespace).Get(stats.Name)
	if apierrors.IsNotFound(err) {
		queue, err = api.Create(ctx, &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: stats.Name}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // the cache lags behind
			p.lookAt(stats.Name)
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("queue %s: %w", stats.Name, err)
	}
	status := schedulingv1alpha1.QueueStatus{
		Policy: schedulingv1alpha1.QueuePolicy(stats.Policy), Quota: stats.Quota,
		Pending: int32(stats.Pending), Reserved: int32(stats.Reserved),
		Dequeued: int32(stats.Dequeued), Running: int32(stats.Running),
		Head: stats.Head, HeadReason: stats.HeadReason,
	}
	if queue.Status == status {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"policy": status.Policy, "quota": status.Quota, "pending": status.Pending, "reserved": status.Reserved,
		"dequeued": status.Dequeued, "running": status.Running,
		"head": lifecycle.OrNull(status.Head), "headReason": lifecycle.OrNull(string(status.HeadReason)),
	}})
	if err != nil {
		return fmt.Errorf("queue %s: %w", stats.Name, err)
	}
	if _, err := api.Patch(ctx, stats.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("queue %s: status: %w", stats.Name, err)
	}
	return nil
}

// retire deletes the Queue of a group that is gone, unless an administrator has
// set something in it, which is kept for when the group comes back. A Queue that
// never had a group is somebody else's.
func (p *publisher) retire(ctx context.Context, name string) error {
	queue, err := p.queues.Queues(p.namespace).Get(name)
	if apierrors.IsNotFound(err) || err == nil && queue.Status.Quota == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("queue %s: %w", name, err)
	}
	api := p.client.SchedulingV1alpha1().Queues(p.namespace)
	if queue.Spec == (schedulingv1alpha1.QueueSpec{}) {
		// As it was seen: something may be set in it at this moment.
		err := api.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &queue.UID, ResourceVersion: &queue.ResourceVersion}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("queue %s: %w", name, err)
		}
		return nil
	}
	patch := []byte(`{"status":{"policy":null,"quota":null,"pending":0,"reserved":0,"dequeued":0,"running":0,"head":null,"headReason":null}}`)
	if _, err := api.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("queue %s: status: %w", name, err)
	}
	return nil
}
