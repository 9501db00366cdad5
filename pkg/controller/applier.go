package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

const (
	// tryTimeout is the timeout of a write and of the reads around it. The write itself has a shorter timeout.
	tryTimeout = 15 * time.Second
	// refusalPeriod is how long to wait before the next write to a unit after the API server has denied one.
	refusalPeriod = 5 * time.Minute
)

// applier carries out plans. It retries each write until the outcome is known, and puts the outcome into the inbox.
type applier struct {
	units  *lenient.Client
	clock  clock.Clock
	inbox  *inbox
	writes workqueue.TypedDelayingInterface[*pendingWrite]
}

// pendingWrite is a write whose outcome is not known yet.
type pendingWrite struct {
	*scheduler.Write
	// at is when it was first tried.
	at      metav1.MicroTime
	backoff wait.Backoff
}

func newApplier(client *clientset.Clientset, clock clock.WithTicker, inbox *inbox) *applier {
	return &applier{units: unitsOf(client), clock: clock, inbox: inbox,
		writes: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[*pendingWrite]{Clock: clock})}
}

func (a *applier) add(plan scheduler.Plan) {
	for i := range plan {
		a.writes.Add(&pendingWrite{Write: &plan[i],
			backoff: wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 10, Cap: 10 * time.Second}})
	}
}

func (a *applier) run(ctx context.Context, workers int) {
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for {
				w, shutdown := a.writes.Get()
				if shutdown {
					return
				}
				if ctx.Err() == nil {
					a.write(ctx, w)
				}
				a.writes.Done(w)
			}
		})
	}
	<-ctx.Done()
	a.writes.ShutDown()
	group.Wait()
}

// write patches the unit and reports the outcome. If the outcome is unknown, for example after a broken connection, it
// schedules a retry: if the first try took effect, the second fails with a conflict.
func (a *applier) write(ctx context.Context, w *pendingWrite) {
	logger := klog.FromContext(ctx).WithValues("unit", w.Key, "write", w.Kind.String(), "seq", w.Seq)
	namespace, name, err := cache.SplitMetaNamespaceKey(w.Key)
	if err != nil {
		logger.Error(err, "Cannot parse the key of the unit; this is a bug, please report it")
		return
	}
	if w.at.IsZero() {
		w.at = metav1.NewMicroTime(a.clock.Now())
	}
	// Do not cancel a write in progress on shutdown: it could still take effect after the next leader has listed the
	// units.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTimeout)
	defer cancel()
	version, err := a.try(ctx, w.Write, namespace, name, w.at)
	switch {
	case err == nil:
		logger.V(2).Info("Wrote the status of the unit", "reason", w.Reason, "quota", w.Quota)
		a.inbox.put(written(w.Write, version, w.at.Time))
		return
	case isDenied(err):
		logger.Error(err, "The API server denies to write the status of the unit; trying again later", "after", refusalPeriod)
		a.inbox.put(denied(w.Write, err, a.clock.Now().Add(refusalPeriod)))
		return
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		var unit lenient.Object
		conflict := apierrors.IsConflict(err)
		unit, err = a.units.Get(ctx, namespace, name)
		if conflict && apierrors.IsNotFound(err) {
			unit, err = a.units.Get(ctx, namespace, name)
		}
		// Two requests found no unit, so its quota is freed. An error that the kind is not served proves nothing.
		if apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
			unit, err = nil, nil
		}
		if err == nil {
			logger.V(2).Info("The unit has changed; deciding again")
			a.inbox.put(refused(w.Write, unit))
			return
		}
	}
	logger.Error(err, "Cannot write the status of the unit; trying again")
	a.writes.AddAfter(w, w.backoff.Step())
}

// isDenied reports whether the API server will give the same answer again. A webhook can deny a request with any code,
// even that of a conflict. The API server gives no reason for an object that is too large for etcd, or for a message to
// it. Users can add labels to a unit until there is no room for its status.
func isDenied(err error) bool {
	for _, text := range []string{"denied the request", "etcdserver: request is too large", "trying to send message larger than max"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsUnsupportedMediaType(err)
}

// try sends the patch and returns the new version of the unit. A merge patch replaces the list of conditions, so a
// patch that sets one must contain all the others. try reads them, and the pod sets of a unit that can never fit,
// because the informer does not store them. If they change before the patch arrives, the API server rejects it.
func (a *applier) try(ctx context.Context, w *scheduler.Write, namespace, name string, at metav1.MicroTime) (version string, err error) {
	var conditions []metav1.Condition
	switch w.Kind {
	case scheduler.Evict, scheduler.MarkOverQuota, scheduler.ClearOverQuota, scheduler.MarkUnscheduled, scheduler.ClearUnscheduled,
		scheduler.Expire:
		unit, err := a.units.Get(ctx, namespace, name)
		if err != nil {
			return "", err
		}
		conditions = conditionsOf(unit)
	case scheduler.Explain:
		if w.Resource == "" {
			break
		}
		object, err := a.units.Get(ctx, namespace, name)
		if err != nil {
			return "", err
		}
		if unit, is := object.(*schedulingv1alpha1.QueueUnit); is {
			explained := *w
			explained.Message += codec.Parts(&unit.Spec, w.Resource, w.Asked)
			w = &explained
		}
	}
	patch, err := statusPatch(w, at, conditions)
	if err != nil {
		return "", err
	}
	return a.units.Patch(ctx, types.MergePatchType, namespace, name, patch, "status")
}

func conditionsOf(object lenient.Object) []metav1.Condition {
	if unreadable, is := object.(*lenient.Unreadable); is {
		object = unreadable.Partial
	}
	if unit, is := object.(*schedulingv1alpha1.QueueUnit); is {
		return unit.Status.Conditions
	}
	return nil
}

// statusPatch returns the patch for a write. The controller writes nothing else to a unit. conditions are the unit's
// current conditions, for a write that sets one of them.
func statusPatch(w *scheduler.Write, now metav1.MicroTime, conditions []metav1.Condition) ([]byte, error) {
	at := lifecycle.Place{Quota: w.Quota, Queue: w.Queue}
	var status lifecycle.Status
	switch w.Kind {
	case scheduler.Dequeue:
		status = lifecycle.Dequeued(at, w.Attempt, now)
		if w.AwaitsPods {
			status = lifecycle.AwaitingPods(status, now)
		}
		if w.Gates {
			status["growth"] = schedulingv1alpha1.GrowthGate
		}
		status = withGrant(status, w.Grant)
	case scheduler.Reserve:
		status = withGrant(lifecycle.Reserved(at, w.Checks.Names(), w.Reservation, w.Reason, w.Message, now), w.Grant)
	case scheduler.Requeue:
		status = lifecycle.Requeued(at, w.Reason, w.Message, w.Requeue.Count, metav1.NewMicroTime(w.Requeue.Until), now)
		if w.Rejected {
			status = lifecycle.Rejected(status, w.Generation, w.Message, now)
		}
	case scheduler.Evict:
		status = lifecycle.Evicted(conditions, w.Reason, w.Message, w.EvictedFor, now)
	case scheduler.MarkOverQuota, scheduler.ClearOverQuota:
		status = lifecycle.OverQuota(conditions, w.Kind == scheduler.MarkOverQuota, w.Reason, w.Message, now)
	case scheduler.MarkUnscheduled, scheduler.ClearUnscheduled:
		status = lifecycle.Unscheduled(conditions, w.Message, now)
	case scheduler.Expire:
		status = lifecycle.Expired(conditions, w.Message, now)
	case scheduler.ShowPlace:
		status = at.Status()
	case scheduler.Explain:
		message := w.Message
		if w.Figures {
			message = lifecycle.AsOf(message, now)
		}
		status = lifecycle.Explained(at, w.Reason, message)
	default:
		return nil, fmt.Errorf("unit %s: unknown kind of write %d", w.Key, w.Kind)
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": w.UID, "resourceVersion": fmt.Sprint(w.Version)},
		"status":   status,
	})
}

// withGrant adds the grant of a unit that is admitted with fewer pods than requested.
func withGrant(status lifecycle.Status, grant scheduler.Grant) lifecycle.Status {
	if grant.Count == 0 {
		return status
	}
	return lifecycle.AdmittedWith(status, grant.PodSet, grant.Count)
}

func written(w *scheduler.Write, version string, at time.Time) input {
	return func(l *loop) {
		version, err := codec.ParseVersion(w.Key, version)
		if err != nil {
			l.logger.Error(err, "Cannot parse the resourceVersion of the unit")
		}
		l.measures.written(w, at)
		if w.Kind == scheduler.Evict && w.Reason == wellknown.ReasonMaximumExecutionTime {
			l.ended(w.Key)
		}
		l.apply(scheduler.Written{Write: w, Version: version, At: at})
		switch {
		case w.Kind == scheduler.Dequeue, w.Kind == scheduler.Reserve:
			l.estimates.started(w.UID, at)
		case w.Kind == scheduler.Evict && w.Reason == wellknown.ReasonNotAdmitted:
			l.emit(notice(w, wellknown.EventNotAdmitted, "The unit was not admitted: something other than kube-queue-controller set its phase. The unit is charged until its job has stopped, "+
				"and is then queued again. Ask an administrator to check who can write queueunits/status, and to install the policy kube-queue-units."))
		case w.Kind == scheduler.Expire:
			l.emit(notice(w, wellknown.EventNotRenewed, "The unit has lost its quota: it was created by hand and was not renewed in time. "+
				"Stop its work, or create another unit for it, and renew that unit regularly in status.renewTime."))
		}
	}
}

// notice is a warning event on a unit. job-extensions writes the events on jobs, and some units have no job.
func notice(w *scheduler.Write, reason wellknown.EventReason, message string) backend.Notice {
	namespace, name, _ := cache.SplitMetaNamespaceKey(w.Key) // the key always has this form
	return backend.Notice{
		About: reference("QueueUnit", &metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(w.UID), ResourceVersion: fmt.Sprint(w.Version)}),
		Type:  corev1.EventTypeWarning, Reason: reason, Message: message,
	}
}

// refused reports a write that changed nothing. The unit is nil if it was deleted.
func refused(w *scheduler.Write, unit lenient.Object) input {
	return func(l *loop) {
		event := scheduler.Refused{Write: w}
		if unit != nil {
			now, err := l.reader.ReadComplete(unit)
			if err != nil {
				denied(w, fmt.Errorf("unit %s cannot be read: %w", w.Key, err), l.now.Add(refusalPeriod))(l)
				return
			}
			event.Now = &now
		}
		l.measures.refused(w)
		l.apply(event)
	}
}

// denied reports a write that the API server rejects.
func denied(w *scheduler.Write, why error, until time.Time) input {
	return func(l *loop) {
		l.measures.denied(w)
		l.apply(scheduler.Denied{Write: w, Until: until, Why: &quota.Refusal{Reason: wellknown.ReasonBackoff,
			Sentence: fmt.Sprintf("the API server does not let kube-queue-controller write the status of the unit; the next attempt is at %s: %v",
				until.UTC().Format(time.RFC3339), why)}})
		l.emit(notice(w, wellknown.EventStatusDenied, fmt.Sprintf("The API server does not let kube-queue-controller write the status of the unit, "+
			"so its job is neither admitted nor evicted. The controller tries again every %v, and when the unit changes. Ask an administrator to correct the policy or the role: %v",
			refusalPeriod, why)))
	}
}
