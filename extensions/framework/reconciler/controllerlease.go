package reconciler

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/extensions/framework"
)

const (
	// controllerName is the name of the Lease and of the Deployment of the controller.
	controllerName = "kube-queue-controller"
	// leaseEvery is how often the Lease is read.
	leaseEvery = time.Second
	// vacantAfter is how long a Lease can have no holder before this counts as an outage. A standby replica takes it
	// within 2.4 s.
	vacantAfter = 3 * time.Second
	// notifyAfter is how long an outage must last before jobs that already have an event are notified.
	notifyAfter = 10 * time.Second
	// notifyEach is the maximum number of these jobs that are notified each time the Lease is read.
	notifyEach = 10
)

// outage is a time during which no controller runs.
type outage struct {
	// since identifies it. message explains it.
	since, message string
	began          time.Time
	// absent: there is no Lease. The controller can run without one, so only units that it has not written to show an
	// outage.
	absent bool
}

// controllerLease reads the Lease of the controller to tell whether a controller runs. Clocks of machines differ, so it
// mostly relies on when it saw the Lease change.
type controllerLease struct {
	get func(context.Context) (*coordinationv1.Lease, error)
	now atomic.Pointer[outage]

	// renewed, holder and exists describe the Lease at the last read. changed is when it was first read like that, and
	// observed whether it was seen to change.
	renewed  metav1.MicroTime
	holder   string
	exists   bool
	changed  time.Time
	observed bool
}

func (c *controllerLease) outage() *outage { return c.now.Load() }

// look reads the Lease. After an error, the state does not change.
func (c *controllerLease) look(ctx context.Context, now time.Time) error {
	lease, err := c.get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		lease = nil
	case err != nil:
		return fmt.Errorf("reading the Lease of %s: %w", controllerName, err)
	}
	found := c.judge(lease, now)
	if last := c.now.Load(); last != nil && found != nil && last.since == found.since {
		return nil // the same outage, whose start is known
	}
	c.now.Store(found)
	return nil
}

// judge returns the outage that a Lease shows; nil for none.
func (c *controllerLease) judge(lease *coordinationv1.Lease, now time.Time) *outage {
	var renewed metav1.MicroTime
	holder, lasts := "", time.Duration(0)
	if lease != nil {
		renewed, holder = ptr.Deref(lease.Spec.RenewTime, renewed), ptr.Deref(lease.Spec.HolderIdentity, "")
		lasts = time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	}
	first := c.changed.IsZero()
	if first || c.exists != (lease != nil) || c.holder != holder || !c.renewed.Equal(&renewed) {
		c.observed = !first
		c.renewed, c.holder, c.exists, c.changed = renewed, holder, lease != nil, now
	}
	unchanged := now.Sub(c.changed)
	fix := fmt.Sprintf("an administrator must start Deployment %s", controllerName)
	since := renewed.UTC().Format(time.RFC3339)
	switch {
	case lease == nil && unchanged >= vacantAfter:
		return &outage{since: "absent/" + c.changed.UTC().Format(time.RFC3339), began: now, absent: true,
			message: fmt.Sprintf("%s, which admits units, does not run: its Lease does not exist; %s", controllerName, fix)}
	case lease == nil:
		return nil
	case holder == "" && unchanged >= vacantAfter,
		holder != "" && unchanged > lasts,
		holder != "" && !c.observed && unchanged >= vacantAfter && now.After(renewed.Add(lasts)):
		return &outage{since: since, began: now,
			message: fmt.Sprintf("%s, which admits units, has not run since %s; %s", controllerName, since, fix)}
	}
	return nil
}

// notice is a job that gets an event about an outage, or about its end.
type notice struct {
	reconciler *reconciler
	uid        types.UID
	key        types.NamespacedName
}

// watchController notifies waiting jobs when no controller runs: new ones immediately, and the others at a bounded
// rate. When a controller runs again, they are notified of their current state.
func (f *Framework) watchController(ctx context.Context) {
	ticker := f.Clock.NewTicker(leaseEvery)
	defer ticker.Stop()
	var last *outage
	var others []notice
	failing := false
	for {
		err := f.controller.look(ctx, f.Clock.Now())
		if err != nil && !failing && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Jobs are not notified when the controller does not run, retrying")
		}
		failing = err != nil
		outage := f.controller.outage()
		if outage != last {
			f.logOutage(ctx, last, outage)
			others = f.notifyNew(outage)
			last = outage
		}
		if outage == nil || !f.Clock.Now().Before(outage.began.Add(notifyAfter)) {
			others = f.notifySome(others, outage)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func (f *Framework) logOutage(ctx context.Context, before, now *outage) {
	switch {
	case now != nil && now.absent:
		klog.FromContext(ctx).Info("The Lease of the controller does not exist: it does not run, or not with leader election", "name", controllerName)
	case now != nil:
		klog.FromContext(ctx).Error(nil, "Nothing is admitted", "cause", now.message)
	case before != nil:
		klog.FromContext(ctx).Info("The controller runs again", "name", controllerName)
	}
}

// notifyNew queues the jobs whose units the controller has not written to yet, and returns the other jobs to notify: in
// an outage all that wait, and after it those that were notified of it.
func (f *Framework) notifyNew(outage *outage) []notice {
	var others []notice
	for _, r := range f.reconcilers {
		if outage == nil {
			for uid, last := range r.memory.outages.all() {
				others = append(others, notice{r, uid, last.job})
			}
			continue
		}
		for _, unit := range r.units.ofKind(r.kind) {
			if !r.inKindVersions(unit) || !unit.Status.Phase.Waits() && unit.Status.Phase != v1alpha1.PhaseReserved {
				continue
			}
			key := types.NamespacedName{Namespace: unit.Namespace, Name: unit.Spec.ConsumerRef.Name}
			switch {
			case unit.Status.Reason == "":
				r.queue.Add(key)
			case !outage.absent:
				others = append(others, notice{r, unit.Spec.ConsumerRef.UID, key})
			}
		}
	}
	return others
}

// notifySome notifies as many jobs as the rate allows, and returns the others. It forgets those that are gone.
func (f *Framework) notifySome(others []notice, outage *outage) []notice {
	some := others[:min(notifyEach, len(others))]
	for _, t := range some {
		object, _, _ := t.reconciler.cached.GetIndexer().GetByKey(t.key.String())
		if job, exists := object.(framework.Object); !exists || job.GetUID() != t.uid {
			t.reconciler.memory.outages.forget(t.uid)
			continue
		}
		if outage != nil {
			t.reconciler.memory.outages.set(t.uid, notified{t.key, outage.since})
		}
		t.reconciler.queue.Add(t.key)
	}
	return others[len(some):]
}
