package reconciler

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/arrival"
	schedulingclient "kube-queue.dev/kube-queue/pkg/generated/clientset/versioned/typed/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/metrics"
)

// Waits between retries.
const (
	retryMin = 20 * time.Millisecond
	retryMax = 30 * time.Second
	// actTimeout limits all requests of one step; a write has a shorter timeout of its own.
	actTimeout = 15 * time.Second
)

// reconciler keeps the jobs of one kind and their units in sync.
type reconciler struct {
	adapter framework.Adapter
	// described is the kind as it is queued here: the suspend field may be no mark.
	described framework.Kind
	kind      schema.GroupKind
	// annotated: only the annotation marks jobs. Of others almost nothing is cached.
	annotated bool
	jobs      *jobClient
	// cached has the jobs.
	cached cache.SharedIndexInformer
	// remains has the objects of Kind.Remains; nil if the kind has none.
	remains cache.SharedIndexInformer
	// related has the objects of Kind.Related; nil if the kind has none.
	related cache.SharedIndexInformer
	// relatedLive reads objects of Kind.Related as they are now; nil if the kind has none.
	relatedLive *lenient.Client
	units       *unitCache
	// all returns the reconcilers of all kinds that are queued.
	all    func() []*reconciler
	client schedulingclient.QueueUnitsGetter
	// metadata reads what is left of jobs that are gone.
	metadata metadata.Interface
	cluster  decision.Cluster
	events   EventSink
	clock    clock.WithTicker
	queue    workqueue.TypedRateLimitingInterface[types.NamespacedName]
	lanes    *lanes
	// arrivals records the order in which jobs are taken from the queue.
	arrivals *arrival.Sender
	memory   *memory
	metrics  *metrics.Extensions
	// controller knows whether a controller runs, and kueue whether Kueue is installed.
	controller *controllerLease
	kueue      *kueue
}

func newReconciler(f *Framework, adapter framework.Adapter, annotated bool) (*reconciler, error) {
	kind := adapter.Kind()
	if annotated {
		kind.MarkedBySuspend = false
	}
	jobs, err := newJobClient(f.opts.Config, adapter, f.serves, f.opts.Clock)
	if err != nil {
		return nil, err
	}
	remains, err := newRemains(f.opts.Config, f.metadata, adapter, jobs.Version, f.reporter(kind.Remains, kind.Group))
	if err != nil {
		return nil, err
	}
	related, err := newRelated(f.opts.Config, adapter, f.reporter(kind.Related.Resource, kind.Related.Group))
	if err != nil {
		return nil, err
	}
	relatedLive, err := newRelatedClient(f.opts.Config, adapter)
	if err != nil {
		return nil, err
	}
	lanes := newLanes()
	r := &reconciler{
		adapter: adapter, described: kind, kind: kind.GroupKind(), annotated: annotated, jobs: jobs, remains: remains, related: related, relatedLive: relatedLive,
		units: f.units, all: func() []*reconciler { return f.reconcilers }, client: f.client.SchedulingV1alpha1(), metadata: f.metadata, cluster: f.cluster,
		events: f.opts.Events, clock: f.opts.Clock, memory: newMemory(), metrics: f.opts.Metrics,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryMin, retryMax),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(
				workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Clock: f.opts.Clock, Name: adapter.Kind().Name,
					Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Name: adapter.Kind().Name, Clock: f.opts.Clock, Queue: lanes})})}),
		lanes: lanes, arrivals: arrival.NewSender(), controller: f.controller, kueue: f.kueue,
	}
	if annotated {
		jobs.concerns = r.concerns
	}
	if r.cached, err = jobs.informer(f.reporter(kind.Resource, kind.Group)); err != nil {
		return nil, err
	}
	if _, err := r.cached.AddEventHandler(r.jobHandler()); err != nil {
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

// run processes jobs until ctx is done. It first waits until all caches have synced:
// before that, a job or unit that is not cached yet would be considered gone.
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
	klog.FromContext(ctx).Info("Started queuing jobs of this kind", "version", r.jobs.Version())
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
	// A step that has started is not cancelled when the program is stopped: the write might
	// be applied anyway, after the next leader has read the objects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTimeout)
	defer cancel()
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("job", key))
	after, err := r.reconcile(ctx, turn, key, now)
	switch {
	case err == nil:
		r.queue.Forget(key)
		if after > 0 {
			r.prioritize(key)
			r.queue.AddAfter(key, after)
		}
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		// The informer will deliver the newer object, and the next step waits for it.
		klog.FromContext(ctx).V(3).Info("Object changed in the meantime", "err", err)
		r.prioritize(key)
		r.queue.AddRateLimited(key)
	default:
		klog.FromContext(ctx).Error(err, "Failed to reconcile the job, retrying")
		r.prioritize(key)
		r.queue.AddRateLimited(key)
	}
	return true
}
