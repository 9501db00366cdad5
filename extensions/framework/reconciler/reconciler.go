package reconciler

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/arrival"
	schedulingclient "kube-queue.dev/kube-queue/pkg/generated/clientset/versioned/typed/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/metrics"
)

// Waits between tries of what has failed.
const (
	retryMin = 20 * time.Millisecond
	retryMax = 30 * time.Second
	// actTimeout is for all requests about one job; a write has a shorter one of its own.
	actTimeout = 15 * time.Second
)

// reconciler brings the jobs of one kind and their units in step.
type reconciler struct {
	adapter framework.Adapter
	kind    schema.GroupKind
	jobs    *jobClient
	// cached holds the jobs.
	cached cache.SharedIndexInformer
	// remains holds what keeps jobs from having ended; nil where nothing does.
	remains cache.SharedIndexInformer
	// related holds what says what the pods of jobs are; nil where jobs do so themselves.
	related cache.SharedIndexInformer
	units   *unitCache
	client  schedulingclient.QueueUnitsGetter
	cluster decision.Cluster
	events  EventSink
	clock   clock.WithTicker
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	lanes   *lanes
	// arrivals keep the order in which jobs are taken from the queue.
	arrivals *arrival.Sender
	memory   *memory
	metrics  *metrics.Extensions
}

func newReconciler(f *Framework, adapter framework.Adapter) (*reconciler, error) {
	jobs, err := newJobClient(f.opts.Config, adapter, f.serves, f.opts.Clock)
	if err != nil {
		return nil, err
	}
	cached, err := jobs.informer()
	if err != nil {
		return nil, err
	}
	remains, err := newRemains(f.opts.Config, adapter.Kind(), jobs.Version)
	if err != nil {
		return nil, err
	}
	related, err := newRelated(f.opts.Config, adapter)
	if err != nil {
		return nil, err
	}
	lanes := newLanes()
	r := &reconciler{
		adapter: adapter, kind: adapter.Kind().GroupKind(), jobs: jobs, cached: cached, remains: remains, related: related,
		units: f.units, client: f.client.SchedulingV1alpha1(), cluster: f.cluster,
		events: f.opts.Events, clock: f.opts.Clock, memory: newMemory(), metrics: f.opts.Metrics,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryMin, retryMax),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(
				workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Clock: f.opts.Clock, Name: adapter.Kind().Name,
					Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Name: adapter.Kind().Name, Clock: f.opts.Clock, Queue: lanes})})}),
		lanes: lanes, arrivals: arrival.NewSender(),
	}
	if _, err := cached.AddEventHandler(handler(r.jobChanged, r.jobGone)); err != nil {
		return nil, fmt.Errorf("watching %s: %w", adapter.Kind().Resource, err)
	}
	if remains != nil {
		if _, err := remains.AddEventHandler(handler(r.controlledChanged, r.controlledChanged)); err != nil {
			return nil, fmt.Errorf("watching %s: %w", adapter.Kind().Remains, err)
		}
	}
	if related != nil {
		if _, err := related.AddEventHandler(handler(r.relatedChanged, r.relatedChanged)); err != nil {
			return nil, fmt.Errorf("watching %s: %w", adapter.Kind().Related.Resource, err)
		}
	}
	if _, err := f.units.AddEventHandler(handler(r.unitChanged, r.unitGone)); err != nil {
		return nil, fmt.Errorf("watching QueueUnits for %s: %w", adapter.Kind().Resource, err)
	}
	return r, nil
}

// run works until ctx is done. All caches must have synced: before, a job or
// unit that is only not yet seen would be taken to be gone.
func (r *reconciler) run(ctx context.Context, workers int) {
	synced := []cache.InformerSynced{r.cached.HasSynced, r.units.HasSynced}
	if r.remains != nil {
		synced = append(synced, r.remains.HasSynced)
	}
	if r.related != nil {
		synced = append(synced, r.related.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return
	}
	klog.FromContext(ctx).Info("Jobs of this kind are queued from now on", "version", r.jobs.Version())
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for r.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	r.queue.ShutDown()
	running.Wait()
}

func (r *reconciler) next(ctx context.Context) bool {
	turn := r.arrivals.Enter()
	key, shutdown := r.queue.Get()
	if shutdown {
		turn.End()
		return false
	}
	now := r.clock.Now()
	defer r.queue.Done(key)
	defer turn.End()
	if ctx.Err() != nil {
		return true
	}
	// What is under way is not called off when the program is reported to end: a write might
	// land all the same, after the next leader has looked at what there is.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTimeout)
	defer cancel()
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("job", key))
	after, err := r.reconcile(ctx, turn, key, now)
	switch {
	case err == nil:
		r.queue.Forget(key)
		if after > 0 {
			r.hurry(key)
			r.queue.AddAfter(key, after)
		}
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		// The newer object is on its way, and awaited.
		klog.FromContext(ctx).V(3).Info("Something has changed meanwhile", "err", err)
		r.hurry(key)
		r.queue.AddRateLimited(key)
	default:
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "A step failed and is tried again")
		}
		r.hurry(key)
		r.queue.AddRateLimited(key)
	}
	return true
}
