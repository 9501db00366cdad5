package framework

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

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	schedulingclient "kube-queue.dev/kube-queue/pkg/generated/clientset/versioned/typed/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/tolerant"
)

// Waits between tries of what has failed.
const (
	retryMin = 20 * time.Millisecond
	retryMax = 30 * time.Second
)

// reconciler brings the jobs of one kind and their units in step.
type reconciler struct {
	adapter Adapter
	kind    schema.GroupKind
	jobs    *jobClient
	// cached holds the jobs.
	cached cache.SharedIndexInformer
	units  *unitCache
	client schedulingclient.QueueUnitsGetter
	// classes are those of the cluster.
	classes PriorityClasses
	events  EventSink
	clock   clock.WithTicker
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	memory  *memory
}

func newReconciler(f *Framework, adapter Adapter) (*reconciler, error) {
	jobs, err := newJobClient(f.opts.Config, adapter)
	if err != nil {
		return nil, err
	}
	cached, err := jobs.informer()
	if err != nil {
		return nil, err
	}
	r := &reconciler{
		adapter: adapter, kind: adapter.Kind().GroupKind(), jobs: jobs, cached: cached,
		units: f.units, client: f.client.SchedulingV1alpha1(), classes: f.classes,
		events: f.opts.Events, clock: f.opts.Clock, memory: newMemory(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryMin, retryMax),
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Clock: f.opts.Clock}),
	}
	if _, err := cached.AddEventHandler(handler(r.jobChanged, r.jobGone)); err != nil {
		return nil, fmt.Errorf("watching %s: %w", adapter.Kind().Resource, err)
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
		r.queue.Add(types.NamespacedName{Namespace: job.GetNamespace(), Name: job.GetName()})
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
	if kind, job, ours := jobOf(unit); ours && kind == r.kind {
		r.queue.Add(job)
	}
}

func (r *reconciler) unitGone(obj any) {
	if unit, isUnit := obj.(*v1alpha1.QueueUnit); isUnit {
		r.memory.forgetUnit(unit.UID)
	}
	r.unitChanged(obj)
}

// classesChanged looks again at all that wait: a class may be there now, or the
// default be another.
func (r *reconciler) classesChanged() {
	for _, unit := range r.units.ofKind(r.kind) {
		if unit.Status.Phase.Waits() {
			r.unitChanged(unit)
		}
	}
}

// run works until ctx is done. Both caches must have synced: before, a job or
// unit that is only not yet seen would be taken to be gone.
func (r *reconciler) run(ctx context.Context, workers int) {
	if !cache.WaitForCacheSync(ctx.Done(), r.cached.HasSynced, r.units.HasSynced) {
		return
	}
	klog.FromContext(ctx).Info("Jobs of this kind are queued from now on")
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
	key, shutdown := r.queue.Get()
	if shutdown {
		return false
	}
	defer r.queue.Done(key)
	if ctx.Err() != nil {
		return true
	}
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("job", key))
	after, err := r.reconcile(ctx, key)
	switch {
	case err == nil:
		r.queue.Forget(key)
		if after > 0 {
			r.queue.AddAfter(key, after)
		}
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		// The newer object is on its way, and awaited.
		klog.FromContext(ctx).V(3).Info("Something has changed meanwhile", "err", err)
		r.queue.AddRateLimited(key)
	default:
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "A step failed and is tried again")
		}
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
	now  time.Time
}

// reconcile takes one step with the job of the name, and with what units jobs of
// that name have left behind. It returns when to look again.
func (r *reconciler) reconcile(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	now := r.clock.Now()
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
	if bad, isBad := job.(*tolerant.Unreadable); isBad {
		klog.FromContext(ctx).V(2).Info("The job cannot be read and is left alone", "err", bad.Err)
		return after, nil
	}
	if wait := r.behind(key, job, unit, now); wait > 0 {
		return sooner(after, wait), nil
	}
	l := r.look(key, job, unit, now)
	decision := Decide(l.state, l.unit, l.want, now)
	r.tellQueued(l, decision.Queued)
	after = sooner(after, decision.After)
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

// look gathers what Decide is to know.
func (r *reconciler) look(key types.NamespacedName, job Object, unit *v1alpha1.QueueUnit, now time.Time) *look {
	kind, sight := r.adapter.Kind(), r.adapter.See(job)
	_, shows := r.adapter.(QueuingShower)
	l := &look{key: key, job: job, unit: unit, now: now, state: State{
		Sight:        sight,
		Foreign:      foreign(kind, job, sight),
		Marked:       marked(kind, job, sight),
		Released:     job.GetAnnotations()[ReleasedAnnotation],
		Active:       job.GetAnnotations()[ActiveAnnotation] != "false",
		Deleting:     job.GetDeletionTimestamp() != nil,
		ShowsQueuing: shows,
		Created:      job.GetCreationTimestamp().Time,
	}}
	waits := unit != nil && (unit.Status.Phase.Waits() || unit.Status.Phase == v1alpha1.PhaseReserved)
	if waits || unit == nil && l.state.Marked && l.state.Foreign == "" {
		l.want = want(r.adapter, job, r.classes)
	}
	watchRun := unit != nil && unit.Status.Phase == v1alpha1.PhaseDequeued && sight.Running && sight.End == nil
	l.state.RunningSince = r.memory.runningSince(job.GetUID(), watchRun, now)
	return l
}

// sooner is the shorter of two waits of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
