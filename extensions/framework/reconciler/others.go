package reconciler

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

// forbiddenRetry is when to check again whether jobs of a kind that is not queued may be listed.
const forbiddenRetry = 5 * time.Minute

// warnOthers writes an event on each marked job of the kinds that are not queued: their hold policies suspend it, and
// nothing else would say so. It keeps nothing about unmarked jobs.
func (f *Framework) warnOthers(ctx context.Context) {
	var running sync.WaitGroup
	for _, adapter := range f.Others {
		running.Go(func() { f.warnOther(ctx, adapter.Kind()) })
	}
	running.Wait()
}

func (f *Framework) warnOther(ctx context.Context, kind framework.Kind) {
	for ctx.Err() == nil {
		resource, err := f.readable(ctx, kind)
		if err != nil {
			return // ctx is done
		}
		// A list of one object shows whether the kind may be listed at all.
		_, err = f.metadata.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			f.followOther(ctx, kind, resource)
			return
		}
		klog.FromContext(ctx).V(2).Info("Marked jobs of a kind that is not queued get no event", "kind", kind.Kind, "err", err)
		retry := time.Second
		if apierrors.IsForbidden(err) {
			retry = forbiddenRetry
		}
		follow.Pause(ctx, f.Clock, retry, nil)
	}
}

// readable waits until the API server serves the kind, and returns its resource.
func (f *Framework) readable(ctx context.Context, kind framework.Kind) (resource schema.GroupVersionResource, err error) {
	err = Retry(ctx, func() (done bool) {
		for _, version := range kind.Versions() {
			gv := schema.GroupVersion{Group: kind.Group, Version: version}
			if served, err := f.Serves(gv, kind.Resource); err == nil && served {
				resource = gv.WithResource(kind.Resource)
				return true
			}
		}
		return false
	})
	return resource, err
}

func (f *Framework) followOther(ctx context.Context, kind framework.Kind, resource schema.GroupVersionResource) {
	jobs := &otherJobs{events: f.Events, units: f.units, kind: kind, version: resource.GroupVersion().String(), notified: map[string]types.UID{}}
	client := f.metadata.Resource(resource)
	list := func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, opts)
	}
	from := lenient.Reporting(list, client.Watch, f.Reporter(resource))
	cache.NewReflectorWithOptions(from, &metav1.PartialObjectMetadata{}, jobs, cache.ReflectorOptions{Name: "marked " + kind.Resource}).RunWithContext(ctx)
}

// otherJobs keeps an event on each marked job of a kind that is not queued. It is the store of a reflector, and
// stores only the UIDs of these jobs.
type otherJobs struct {
	events  EventSink
	units   *unitCache
	kind    framework.Kind
	version string
	// notified has the UIDs by namespace and name. Only the reflector calls, so it needs no lock.
	notified map[string]types.UID
}

// Add and Update notify a marked job, and forget one that is no longer marked.
func (o *otherJobs) Add(obj any) error { return o.Update(obj) }

func (o *otherJobs) Update(obj any) error {
	job, isObject := obj.(metav1.Object)
	if !isObject {
		return fmt.Errorf("a %T is no %s", obj, o.kind.Kind)
	}
	key := job.GetNamespace() + "/" + job.GetName()
	if o.notified[key] != job.GetUID() {
		o.forget(key)
	}
	annotations := job.GetAnnotations()
	_, kueue := job.GetLabels()[wellknown.KueueLabel]
	if annotations[wellknown.SuspendAnnotation] != "true" || annotations[wellknown.BypassAnnotation] == "true" || kueue || job.GetDeletionTimestamp() != nil || decision.PartOf(o.kind.GroupKind(), job) != nil || o.wasReleased(job) {
		return o.Delete(obj)
	}
	if o.notified[key] == job.GetUID() {
		return nil
	}
	o.notified[key] = job.GetUID()
	o.events.Keep(o.event(job))
	return nil
}

// wasReleased reports whether the unit of a job shows that it was released or has ended, when its kind was still queued.
// Its mark may have been applied again since.
func (o *otherJobs) wasReleased(job metav1.Object) bool {
	for _, unit := range o.units.of(o.kind.GroupKind(), types.NamespacedName{Namespace: job.GetNamespace(), Name: job.GetName()}) {
		released := unit.Status.Phase.HoldsQuota() && job.GetAnnotations()[wellknown.ReleasedAnnotation] == decision.Attempt(unit)
		if unit.Spec.ConsumerRef.UID == job.GetUID() && (released || unit.Status.Phase.Ended()) {
			return true
		}
	}
	return false
}

func (o *otherJobs) event(job metav1.Object) events.Event {
	return events.Event{
		Object: corev1.ObjectReference{APIVersion: o.version, Kind: o.kind.Kind, Namespace: job.GetNamespace(), Name: job.GetName(), UID: job.GetUID()},
		Type:   corev1.EventTypeWarning, Reason: wellknown.EventKindNotQueued,
		Message: fmt.Sprintf("Not queued: annotation %s marks the job, and a hold policy suspends it, but job-extensions does not queue %ss;"+
			" an administrator can add %s to --annotation-extensions of job-extensions; to run the job without quota, remove the annotation and unsuspend the job",
			wellknown.SuspendAnnotation, o.kind.Kind, o.kind.Name),
	}
}

func (o *otherJobs) Delete(obj any) error {
	if job, isObject := obj.(metav1.Object); isObject {
		o.forget(job.GetNamespace() + "/" + job.GetName())
	}
	return nil
}

// forget ends the event of the job that was notified, if any.
func (o *otherJobs) forget(key string) {
	if uid, was := o.notified[key]; was {
		o.events.Forget(uid)
		delete(o.notified, key)
	}
}

// Replace notifies the jobs of a list, and forgets those that are not in it.
func (o *otherJobs) Replace(list []any, _ string) error {
	listed := make(map[string]bool, len(list))
	for _, obj := range list {
		if job, isObject := obj.(metav1.Object); isObject {
			listed[job.GetNamespace()+"/"+job.GetName()] = true
		}
		if err := o.Update(obj); err != nil {
			return err
		}
	}
	for key := range o.notified {
		if !listed[key] {
			o.forget(key)
		}
	}
	return nil
}

func (o *otherJobs) Resync() error { return nil }
