package framework

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	schedulingclient "kube-queue.dev/kube-queue/pkg/generated/clientset/versioned/typed/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/pkg/tolerant"
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
	adapter Adapter
	kind    schema.GroupKind
	jobs    *jobClient
	// cached holds the jobs.
	cached cache.SharedIndexInformer
	// remains holds what keeps jobs from having ended; nil where nothing does.
	remains cache.SharedIndexInformer
	units   *unitCache
	client  schedulingclient.QueueUnitsGetter
	cluster Cluster
	events  EventSink
	clock   clock.WithTicker
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	lanes   *lanes
	// arrivals are what is taken from the queue.
	arrivals *arrivals
	memory   *memory
	metrics  *metrics.Extensions
}

func newReconciler(f *Framework, adapter Adapter) (*reconciler, error) {
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
	lanes := newLanes()
	r := &reconciler{
		adapter: adapter, kind: adapter.Kind().GroupKind(), jobs: jobs, cached: cached, remains: remains,
		units: f.units, client: f.client.SchedulingV1alpha1(), cluster: f.cluster,
		events: f.opts.Events, clock: f.opts.Clock, memory: newMemory(), metrics: f.opts.Metrics,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryMin, retryMax),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(
				workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Clock: f.opts.Clock, Name: adapter.Kind().Name,
					Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Name: adapter.Kind().Name, Clock: f.opts.Clock, Queue: lanes})})}),
		lanes: lanes,
	}
	r.arrivals = newArrivals(r.queue, r.clock)
	if _, err := cached.AddEventHandler(handler(r.jobChanged, r.jobGone)); err != nil {
		return nil, fmt.Errorf("watching %s: %w", adapter.Kind().Resource, err)
	}
	if remains != nil {
		if _, err := remains.AddEventHandler(handler(r.remainChanged, r.remainChanged)); err != nil {
			return nil, fmt.Errorf("watching %s: %w", adapter.Kind().Remains, err)
		}
	}
	if _, err := f.units.AddEventHandler(handler(r.unitChanged, r.unitGone)); err != nil {
		return nil, fmt.Errorf("watching QueueUnits for %s: %w", adapter.Kind().Resource, err)
	}
	return r, nil
}

// handler calls changed with each new state of an object, gone with its last.
func handler(changed, gone func(obj any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, obj any) { changed(obj) },
		DeleteFunc: func(obj any) {
			if last, missed := obj.(cache.DeletedFinalStateUnknown); missed {
				obj = last.Obj
			}
			gone(obj)
		},
	}
}

func (r *reconciler) jobChanged(obj any) {
	if job, isJob := obj.(Object); isJob {
		key := types.NamespacedName{Namespace: job.GetNamespace(), Name: job.GetName()}
		r.hurry(key)
		r.queue.Add(key)
	}
}

func (r *reconciler) jobGone(obj any) {
	if job, isJob := obj.(Object); isJob {
		r.memory.forgetJob(job.GetUID())
		r.events.Forget(job.GetUID())
	}
	r.jobChanged(obj)
}

func (r *reconciler) unitChanged(obj any) {
	unit, isUnit := obj.(*v1alpha1.QueueUnit)
	if !isUnit {
		return
	}
	if kind, job, ours := jobOf(unit); ours && kind == r.kind && r.inMyVersions(unit) {
		r.hurry(job)
		r.queue.Add(job)
	}
}

// hurry has the job looked at before those that are still to be put in line, the next
// time that it is queued, if it holds quota.
func (r *reconciler) hurry(job types.NamespacedName) {
	for _, unit := range r.units.of(r.kind, job) {
		if phase := unit.Status.Phase; !phase.Waits() && !phase.Ended() {
			r.lanes.hurry(job)
		}
	}
}

func (r *reconciler) unitGone(obj any) {
	if unit, isUnit := obj.(*v1alpha1.QueueUnit); isUnit {
		r.memory.forgetUnit(unit.UID)
	}
	r.unitChanged(obj)
}

// inMyVersions tells the units of this kind of job from those of a kind that is
// another one by its version alone, as there are of MPIJob.
func (r *reconciler) inMyVersions(unit *v1alpha1.QueueUnit) bool {
	gv, err := schema.ParseGroupVersion(unit.Spec.ConsumerRef.APIVersion)
	return err == nil && slices.Contains(r.adapter.Kind().versions(), gv.Version)
}

// clusterChanged looks again at all that wait, in the namespace if one is given:
// what the cluster adds to their pods, or their class, may be another now.
func (r *reconciler) clusterChanged(namespace string) {
	for _, unit := range r.units.ofKind(r.kind) {
		if unit.Status.Phase.Waits() && (namespace == "" || namespace == unit.Namespace) {
			r.unitChanged(unit)
		}
	}
}

// run works until ctx is done. Both caches must have synced: before, a job or
// unit that is only not yet seen would be taken to be gone.
func (r *reconciler) run(ctx context.Context, workers int) {
	synced := []cache.InformerSynced{r.cached.HasSynced, r.units.HasSynced}
	if r.remains != nil {
		synced = append(synced, r.remains.HasSynced)
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
	arrived := r.arrivals.take()
	if arrived == nil {
		return false
	}
	key := arrived.key
	defer r.queue.Done(key)
	defer arrived.pass()
	if ctx.Err() != nil {
		return true
	}
	// What is under way is not called off when the program is told to end: a write might
	// land all the same, after the next leader has looked at what there is.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTimeout)
	defer cancel()
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("job", key))
	after, err := r.reconcile(ctx, arrived)
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

// look is one look at a job: all that is decided and acted on.
type look struct {
	key   types.NamespacedName
	job   Object
	state State
	// unit is nil when there is none.
	unit *v1alpha1.QueueUnit
	want *Want
	// unread is what cannot be read of the keys that count while the job runs.
	unread error
	now    time.Time
	// after is the unit that one which is created now comes after; empty for none.
	after string
}

// reconcile takes one step with the job of the name, and with what units jobs of
// that name have left behind. It returns when to look again.
func (r *reconciler) reconcile(ctx context.Context, arrived *arrival) (time.Duration, error) {
	key, now := arrived.key, arrived.at
	object, exists, err := r.cached.GetIndexer().GetByKey(key.String())
	if err != nil {
		return 0, fmt.Errorf("reading %s from the cache: %w", key, err)
	}
	job, _ := object.(Object)
	if !exists {
		job = nil
	}
	unit, leftovers := r.unitsOf(key, job)
	after, err := r.clear(ctx, leftovers, now)
	if err != nil || job == nil {
		return after, err
	}
	job, fault := readable(job)
	if job == nil {
		klog.FromContext(ctx).V(2).Info("The job cannot be read and is left alone", "err", fault)
		return after, nil
	}
	if wait := r.behind(key, job, unit, now); wait > 0 {
		return sooner(after, wait), nil
	}
	l := r.look(key, job, unit, now, fault)
	decision := Decide(l.state, l.unit, l.want, now)
	r.tellQueued(l, decision.Queued)
	r.tellUnreadable(l)
	after = sooner(after, decision.After)
	if decision.Action == CreateUnit {
		l.after = arrived.begin(ctx, UnitName(r.kind.Kind, key.Name, job.GetUID()))
	} else {
		arrived.pass()
	}
	if decision.Action == Nothing {
		return after, nil
	}
	klog.FromContext(ctx).V(3).Info("Acting", "action", decision.Action)
	return after, r.act(ctx, l, decision.Action)
}

// unitsOf parts the units of jobs of the name into the job's own, found by the
// name that it must have, and those whose jobs are gone.
func (r *reconciler) unitsOf(key types.NamespacedName, job Object) (own *v1alpha1.QueueUnit, leftovers []*v1alpha1.QueueUnit) {
	for _, unit := range r.units.of(r.kind, key) {
		switch {
		case !r.inMyVersions(unit):
		case job == nil || unit.Spec.ConsumerRef.UID != job.GetUID():
			leftovers = append(leftovers, unit)
		case unit.Name == UnitName(r.kind.Kind, job.GetName(), job.GetUID()):
			own = unit
		}
	}
	return own, leftovers
}

func (r *reconciler) behind(key types.NamespacedName, job Object, unit *v1alpha1.QueueUnit, now time.Time) time.Duration {
	if unit == nil {
		return r.memory.behind(key, job.GetResourceVersion(), "", "", now)
	}
	return r.memory.behind(key, job.GetResourceVersion(), unit.ResourceVersion, unit.UID, now)
}

// readable is what can be read of a job, and what cannot; nil when nothing can.
func readable(job Object) (Object, error) {
	bad, isBad := job.(*tolerant.Unreadable)
	switch {
	case !isBad:
		return job, nil
	case bad.Partial == nil:
		return nil, bad.Err
	default:
		return bad.Partial, bad.Err
	}
}

// look gathers what Decide is to know. Fault is what cannot be read of the job.
func (r *reconciler) look(key types.NamespacedName, job Object, unit *v1alpha1.QueueUnit, now time.Time, fault error) *look {
	kind, sight := r.adapter.Kind(), r.adapter.See(job)
	_, shows := r.adapter.(QueuingShower)
	keys, unread := runKeysOf(job, unit)
	l := &look{key: key, job: job, unit: unit, unread: unread, now: now, state: State{
		Sight:        sight,
		Foreign:      foreign(kind, job, sight),
		Marked:       marked(kind, job, sight),
		Released:     job.GetAnnotations()[ReleasedAnnotation],
		runKeys:      keys,
		Deleting:     job.GetDeletionTimestamp() != nil,
		ShowsQueuing: shows,
		Created:      job.GetCreationTimestamp().Time,
	}}
	waits := unit != nil && (unit.Status.Phase.Waits() || unit.Status.Phase == v1alpha1.PhaseReserved)
	if waits || unit == nil && l.state.Marked && l.state.Foreign == "" {
		l.want = want(r.adapter, job, r.cluster, fault)
	}
	watchRun := unit != nil && unit.Status.Phase == v1alpha1.PhaseDequeued && sight.Running && sight.End == nil
	l.state.RunningSince = r.memory.since(job.GetUID(), isRunning, watchRun, now)
	if l.state.Remains = r.remainOf(job.GetUID()); l.state.Remains != "" {
		l.state.Stopped = false
	}
	l.state.RemainsSince = r.memory.since(job.GetUID(), isRemaining, sight.End != nil && l.state.Remains != "", now)
	return l
}

// sooner is the shorter of two waits of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
