package reconciler

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/arrival"
	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

// Waits between retries.
const (
	retryMin = 20 * time.Millisecond
	retryMax = 30 * time.Second
	// actTimeout limits all requests of one step; a write has its own, shorter timeout.
	actTimeout = 15 * time.Second
)

// reconciler keeps the jobs of one kind and their units in sync.
type reconciler struct {
	// Framework is what all kinds share.
	*Framework
	adapter framework.Adapter
	// described is the kind as it is queued here: its suspend field need not be a mark.
	described framework.Kind
	kind      schema.GroupKind
	// annotated: only the annotation marks jobs. Almost nothing is cached of other jobs.
	annotated bool
	jobs      jobStore
	// gate serves as jobs and cached for a kind of gated pods; nil for other kinds.
	gate *gate
	// cached has the jobs.
	cached cache.SharedIndexInformer
	// remains has the objects of Kind.Remains; nil if the kind has none.
	remains cache.SharedIndexInformer
	// related has the objects of Kind.Related; nil if the kind has none.
	related cache.SharedIndexInformer
	// relatedLive reads objects of Kind.Related as they are now; nil if the kind has none.
	relatedLive *lenient.Client
	queue       workqueue.TypedRateLimitingInterface[types.NamespacedName]
	lanes       *lanes
	// arrivals records the order in which jobs are taken from the queue.
	arrivals *arrival.Sender
	memory   *memory
}

func newReconciler(f *Framework, adapter framework.Adapter, annotated bool) (*reconciler, error) {
	kind := adapter.Kind()
	if annotated {
		kind.MarkedBySuspend = false
	}
	if _, is := adapter.(framework.GatedPods); is {
		return newGateReconciler(f, adapter)
	}
	jobs, err := newJobClient(f.Config, adapter, f.serves, f.Clock)
	if err != nil {
		return nil, err
	}
	remains, err := newRemains(f.Config, adapter, jobs.Version, f.Reporter(kind.GroupVersion().WithResource(kind.Remains)))
	if err != nil {
		return nil, err
	}
	relatedLive, related, err := newRelated(f.Config, adapter, f.Reporter(kind.Related.GroupVersion().WithResource(kind.Related.Resource)))
	if err != nil {
		return nil, err
	}
	r := reconcilerOf(f, adapter, kind, jobs)
	r.annotated, r.remains, r.related, r.relatedLive = annotated, remains, related, relatedLive
	if annotated {
		jobs.concerns = r.concerns
	}
	if r.cached, err = jobs.informer(f.Reporter(kind.GroupVersion().WithResource(kind.Resource))); err != nil {
		return nil, err
	}
	return r, r.watch()
}

// newGateReconciler returns the reconciler of a kind of gated pods.
func newGateReconciler(f *Framework, adapter framework.Adapter) (*reconciler, error) {
	if f.pods == nil {
		var err error
		if f.pods, err = newGatedPods(f.kube.CoreV1(), f.Reporter(corev1.SchemeGroupVersion.WithResource("pods"))); err != nil {
			return nil, err
		}
	}
	kind := adapter.Kind()
	gate := &gate{f.pods, f.units, kind, f.Clock}
	r := reconcilerOf(f, adapter, kind, gate)
	r.gate, r.cached = gate, gate
	return r, r.watch()
}

func reconcilerOf(f *Framework, adapter framework.Adapter, kind framework.Kind, jobs jobStore) *reconciler {
	lanes := newLanes()
	return &reconciler{
		Framework: f, adapter: adapter, described: kind, kind: kind.GroupKind(),
		jobs: jobs, memory: &memory{}, arrivals: arrival.NewSender(), lanes: lanes,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryMin, retryMax),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(
				workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Clock: f.Clock, Name: adapter.Kind().Name,
					Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Name: adapter.Kind().Name, Clock: f.Clock, Queue: lanes})})}),
	}
}

// watch queues the jobs of the kind when they, or objects that they depend on, change.
func (r *reconciler) watch() error {
	handlers := map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		r.cached: r.jobHandler(), r.units: follow.Handler(r.unitChanged, r.unitGone),
	}
	if r.remains != nil {
		handlers[r.remains] = follow.Handler(r.controlledChanged, r.controlledChanged)
	}
	if r.related != nil {
		handlers[r.related] = follow.Handler(r.relatedChanged, r.relatedChanged)
	}
	for informer, handler := range handlers {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching what %s need: %w", r.described.Resource, err)
		}
	}
	return nil
}

func (r *reconciler) caches() []cache.SharedIndexInformer {
	all := []cache.SharedIndexInformer{r.cached}
	if r.remains != nil {
		all = append(all, r.remains)
	}
	if r.related != nil {
		all = append(all, r.related)
	}
	return all
}

// run processes jobs until ctx is done. It first waits until all caches have synced:
// before that, a job or unit that is not cached yet would be considered gone.
func (r *reconciler) run(ctx context.Context, workers int) {
	if !cache.WaitForCacheSync(ctx.Done(), append(syncedBy(r.caches()), r.units.HasSynced)...) {
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
	now := r.Clock.Now()
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
		return true
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		// The informer will deliver the newer object, and the next step waits for it.
		klog.FromContext(ctx).V(3).Info("Object changed in the meantime", "err", err)
	default:
		klog.FromContext(ctx).Error(err, "Failed to reconcile the job, retrying")
	}
	r.prioritize(key)
	r.queue.AddRateLimited(key)
	return true
}
