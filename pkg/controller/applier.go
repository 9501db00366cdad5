package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/lifecycle"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// tryTimeout is for a write and what is read for it; the write has a shorter one of its own.
const tryTimeout = 15 * time.Second

// applier carries out plans. Each write is tried until it is known what became
// of it; the outcome goes to the inbox.
type applier struct {
	units  *lenient.Client
	clock  clock.Clock
	inbox  *inbox
	writes *workqueue.Typed[*scheduler.Write]
}

func newApplier(client versioned.Interface, clock clock.Clock, inbox *inbox) *applier {
	return &applier{units: unitsOf(client), clock: clock, inbox: inbox,
		writes: workqueue.NewTyped[*scheduler.Write]()}
}

func (a *applier) add(plan scheduler.Plan) {
	for i := range plan {
		a.writes.Add(&plan[i])
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
				a.write(ctx, w)
				a.writes.Done(w)
			}
		})
	}
	<-ctx.Done()
	a.writes.ShutDown()
	group.Wait()
}

// write patches the unit and reports the outcome. An unclear answer, as a broken
// connection, is followed by another try: if the first did land, the second
// fails as a conflict and brings the unit as it is.
func (a *applier) write(ctx context.Context, w *scheduler.Write) {
	logger := klog.FromContext(ctx).WithValues("unit", w.Key, "write", w.Kind.String(), "seq", w.Seq)
	namespace, name, err := cache.SplitMetaNamespaceKey(w.Key)
	if err != nil {
		logger.Error(err, "Cannot parse the key of the unit; this is a bug, please report it")
		return
	}
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 10, Cap: 10 * time.Second}
	at := metav1.NewMicroTime(a.clock.Now())
	for ctx.Err() == nil {
		// One that is under way is not called off when the program is reported to end: it might
		// land all the same, after the next leader has looked at what there is.
		version, err := a.try(ctx, w, namespace, name, at)
		switch {
		case err == nil:
			logger.V(2).Info("Wrote the status of the unit", "reason", w.Reason, "quota", w.Quota)
			a.inbox.put(written(w, version, at.Time))
			return
		case apierrors.IsNotFound(err):
			a.inbox.put(refused(w, nil))
			return
		case apierrors.IsConflict(err):
			var unit lenient.Object
			unit, err = a.units.Get(ctx, namespace, name)
			if err == nil {
				logger.V(2).Info("The unit has changed; deciding again")
				a.inbox.put(refused(w, unit))
				return
			}
			if apierrors.IsNotFound(err) {
				a.inbox.put(refused(w, nil))
				return
			}
		}
		logger.Error(err, "Cannot write the status of the unit; trying again")
		select {
		case <-a.clock.After(backoff.Step()):
		case <-ctx.Done():
		}
	}
}

// try makes the patch and sends it, and returns the version that it made. An eviction keeps the unit's other conditions:
// a merge patch has to name them all, and they are read here, for informers keep
// none. When they change before the patch is there, it is refused.
func (a *applier) try(ctx context.Context, w *scheduler.Write, namespace, name string, at metav1.MicroTime) (version string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTimeout)
	defer cancel()
	var conditions []metav1.Condition
	if w.Kind == scheduler.Evict {
		unit, err := a.units.Get(ctx, namespace, name)
		if err != nil {
			return "", err
		}
		conditions = conditionsOf(unit)
	}
	patch, err := statusPatch(w, at, conditions)
	if err != nil {
		return "", err
	}
	return a.units.PatchVersion(ctx, namespace, name, patch, "status")
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

// statusPatch is the whole of what the controller writes to a unit. Conditions are
// those that the unit has; for Evict.
func statusPatch(w *scheduler.Write, now metav1.MicroTime, conditions []metav1.Condition) ([]byte, error) {
	at := lifecycle.Place{Quota: w.Quota, Queue: w.Queue}
	var status lifecycle.Status
	switch w.Kind {
	case scheduler.Dequeue:
		status = lifecycle.Dequeued(at, w.Attempt, now)
	case scheduler.Requeue:
		status = lifecycle.Requeued(at, w.Reason, w.Message, now)
	case scheduler.Evict:
		status = lifecycle.Evicted(conditions, w.Reason, w.Message, now)
	case scheduler.Explain:
		status = lifecycle.Explained(at, w.Reason, w.Message)
	default:
		return nil, fmt.Errorf("unit %s: unknown kind of write %d", w.Key, w.Kind)
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": w.UID, "resourceVersion": fmt.Sprint(w.Version)},
		"status":   status,
	})
}

func written(w *scheduler.Write, version string, at time.Time) input {
	return func(l *loop) {
		version, err := parseVersion(w.Key, version)
		if err != nil {
			l.logger.Error(err, "Cannot parse the resourceVersion of the unit")
		}
		l.measures.written(w, at)
		l.apply(scheduler.Written{Key: w.Key, Seq: w.Seq, Version: version, DequeuedAt: at, Quota: w.Quota})
	}
}

// refused takes nil for a unit that is gone.
func refused(w *scheduler.Write, unit lenient.Object) input {
	return func(l *loop) {
		event := scheduler.Refused{Key: w.Key, Seq: w.Seq}
		if unit != nil {
			now, err := l.reader.readAny(unit)
			if err != nil {
				l.logger.Error(err, "Cannot read the unit", "unit", w.Key)
			}
			event.Now = &now
		}
		l.measures.refused(w)
		l.apply(event)
	}
}
