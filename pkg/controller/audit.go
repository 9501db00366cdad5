package controller

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/controller/podwatch"
	"kube-queue.dev/kube-queue/pkg/lenient"
)

const (
	// AuditInterval is how often used quota is recomputed from units and pods. This takes time
	// proportional to their number, so it is not done after each event.
	AuditInterval = 5 * time.Minute
	// confirmInterval is how long the core must differ from an unchanged object for this to count as a violation.
	// Events take less time.
	confirmInterval = 30 * time.Second
	// mostLogged is the maximum number of violations that one audit logs.
	mostLogged = 20
)

// auditor periodically compares the sums of the core with its units and pods, and these with the objects in the
// informer caches. It logs, counts and corrects violations. They do not end the program, because the cluster still
// depends on it.
type auditor struct {
	// on enables audits. at is when the next audit is due, and confirmAt when to confirm the suspects; zero if there
	// are none.
	on            bool
	at, confirmAt time.Time
	// suspects maps each object that differs from what the core knows to its version.
	suspects map[string]string

	// pods compares pods; nil if they are not watched. units are the cached units. get reads a unit from
	// the API server. start starts a goroutine that reads all units that differ, until its context ends.
	pods  *podwatch.Watch
	units cache.Store
	get   func(ctx context.Context, namespace, name string) (lenient.Object, error)
	start func(func(context.Context))
	// differ are the keys of the units to read.
	differ []string
}

// run audits if an audit is due, and returns when to call it again; zero means never.
func (a *auditor) run(l *loop) time.Time {
	switch now := l.now; {
	case !a.on:
		return time.Time{}
	case a.at.IsZero():
		a.at = now.Add(AuditInterval)
	case !now.Before(a.at):
		a.at = now.Add(AuditInterval)
		l.measures.Audited()
		a.recompute(l)
		a.suspects = map[string]string{}
		a.compare(l, func(d podwatch.Difference) { a.suspects[d.Object] = d.Version })
		if len(a.suspects) > 0 {
			a.confirmAt = now.Add(confirmInterval)
		}
	}
	if !a.confirmAt.IsZero() && !l.now.Before(a.confirmAt) {
		a.confirm(l)
	}
	return earlier(a.at, a.confirmAt)
}

// recompute compares the sums of the core with its units and pods. If they differ, it builds a new backend and charges
// it with them.
func (a *auditor) recompute(l *loop) {
	broken := l.core.Audit(l.names.Name)
	for i, err := range broken {
		a.report(l, i, err)
	}
	if rebuilder, is := l.source.(backend.Rebuilder); is && len(broken) > 0 {
		l.take(rebuilder.Rebuild())
	}
}

// report logs and counts a violation.
func (a *auditor) report(l *loop, index int, err error) {
	l.measures.Violated()
	if index < mostLogged {
		l.logger.Error(err, "An invariant was broken and is corrected; this is a bug, please report it")
	}
}

// confirm reports and heals the suspects that still differ and have not changed since.
func (a *auditor) confirm(l *loop) {
	suspects, confirmed := a.suspects, 0
	a.suspects, a.confirmAt = nil, time.Time{}
	a.compare(l, func(d podwatch.Difference) {
		if version, is := suspects[d.Object]; !is || version != d.Version {
			return
		}
		if d.Problem != "" { // empty for a unit, which is reported after it is read
			a.report(l, confirmed, fmt.Errorf("%s: %s", d.Object, d.Problem))
			confirmed++
		}
		d.Heal()
	})
	if keys := a.differ; len(keys) > 0 {
		a.differ = nil
		a.start(func(ctx context.Context) {
			for _, key := range keys {
				a.read(ctx, l.inbox, key)
			}
		})
	}
}

// compare calls visit with each object that differs from what the core knows.
func (a *auditor) compare(l *loop, visit func(podwatch.Difference)) {
	if a.pods != nil {
		a.pods.Compare(l.core.Pods(), visit)
	}
	if a.units == nil {
		return
	}
	exists := map[string]struct{}{}
	for _, object := range a.units.List() {
		unit, is := object.(metav1.Object)
		if !is {
			continue
		}
		key := unit.GetNamespace() + "/" + unit.GetName()
		exists[key] = struct{}{}
		uid, known := l.core.VersionOf(key)
		if version, err := codec.Version(unit); err == nil && (uid != string(unit.GetUID()) || known < version) {
			visit(a.unitDifference(key, unit.GetResourceVersion()))
		}
	}
	l.core.EachUnit(func(key, uid string) {
		if _, is := exists[key]; !is {
			visit(a.unitDifference(key, uid))
		}
	})
}

// unitDifference describes a unit that differs from what the core knows. Heal schedules a read from the API server.
func (a *auditor) unitDifference(key, version string) podwatch.Difference {
	return podwatch.Difference{Object: "QueueUnit " + key, Version: version, Heal: func() { a.differ = append(a.differ, key) }}
}

// read reads a unit from the API server and passes it to the loop. The unit is gone only if the cache lacks it, too.
func (a *auditor) read(ctx context.Context, inbox *inbox, key string) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return // keys of units always have this form
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	unit, err := a.get(ctx, namespace, name)
	inbox.put(func(l *loop) {
		uid, known := l.core.VersionOf(key)
		_, cached, _ := a.units.GetByKey(key)
		switch {
		case apierrors.IsNotFound(err) && uid != "" && !cached:
			a.report(l, 0, fmt.Errorf("QueueUnit %s: the unit is charged or queued but does not exist", key))
			unitGone(key, uid)(l)
		case err != nil:
			return // the next audit reads it again
		default:
			if u, err := l.reader.ReadComplete(unit); err == nil && (u.UID != uid || u.Version > known) {
				a.report(l, 0, fmt.Errorf("QueueUnit %s: its last change is not known", key))
				unitSeen(l.reader.Compacted(unit))(l)
			}
		}
	})
}
