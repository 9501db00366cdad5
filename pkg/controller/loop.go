package controller

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/pkg/arrival"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/lenient"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// PublishInterval is the default of Config.PublishInterval.
const PublishInterval = 5 * time.Second

// loop owns the core and everything that its decisions depend on. Only one goroutine uses it.
type loop struct {
	clock  clock.Clock
	logger klog.Logger
	core   *scheduler.Scheduler
	names  *resources.Names
	source backend.Source
	// namespace is the namespace of the Queues and of the other objects of the program.
	namespace string
	reader    codec.Reader
	// sequence orders new units before the core receives them.
	sequence *arrival.Receiver[scheduler.Unit]

	inbox      *inbox
	applier    *applier
	publisher  *publisher
	emit       func(backend.Notice)
	measures   *measures
	auditor    auditor
	forgetting forgetting
	// taking is held while the loop applies what the source has seen.
	taking sync.Mutex
	// listed is whether the source has listed the objects of the quota.
	listed bool
	// members are the namespaces of the last groups, by queue.
	members map[string][]string
	// unreadable are the unreadable units that were reported.
	unreadable unreadableUnits
	// excesses are the exceeded limits that the source shows. After the start, they are not known until they are
	// certain.
	excesses      []quota.Excess
	excessesKnown bool
	// views answers questions of other goroutines. viewsAsked wait for a view of the core.
	views      *Views
	viewsAsked []*Views
	// estimates learns how long units run and wait.
	estimates *Estimates
	// check is whether to verify the invariants of the core after every input.
	check bool

	now   time.Time
	dirty bool
	// publishEvery is the shortest time between two updates of the metrics and of what the publisher writes. publishAt is
	// when the next one is allowed.
	publishEvery time.Duration
	publishAt    time.Time
	broken       error
}

// run processes inputs until the context ends or an invariant is broken.
func (l *loop) run(ctx context.Context) error {
	// The previous process may have just written a status.
	l.publishAt = l.clock.Now().Add(l.publishEvery)
	timer := l.clock.NewTimer(0)
	defer timer.Stop()
	// The initial lists leave more garbage than live memory. The runtime would take several minutes to return it to
	// the system.
	clean := sync.OnceFunc(func() { go debug.FreeOSMemory() })
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.inbox.ready:
		case <-timer.C():
		}
		wake := l.turn()
		if l.broken != nil {
			return l.broken
		}
		clean()
		timer.Stop()
		if !wake.IsZero() {
			timer.Reset(max(wake.Sub(l.clock.Now()), 0))
		}
	}
}

// turn processes all inputs and acts on them once.
func (l *loop) turn() (wake time.Time) {
	plan, wake := l.decide(l.inbox.take())
	l.applier.add(plan)
	l.makeViews()
	wake = earlier(earlier(wake, l.publish()), l.auditor.run(l))
	return earlier(wake, l.forgetting.run(l))
}

// decide processes inputs and returns what to write, and when to decide again if nothing happens earlier.
func (l *loop) decide(inputs []input) (plan scheduler.Plan, wake time.Time) {
	l.measures.QuotaChanges(l.clock.Now()) // before l.now is set, so that no counter is ahead of it
	l.now = l.clock.Now()
	for _, take := range inputs {
		take(l)
		l.prove()
	}
	l.show(l.sequence.Due(l.now))
	plan, wake = l.core.Next(l.now)
	l.dirty = l.dirty || len(plan) > 0
	l.measures.decided(l.core, l.clock.Since(l.now))
	l.reportExcesses()
	l.prove()
	return plan, earlier(wake, l.sequence.Next())
}

func (l *loop) apply(e scheduler.Event) {
	l.dirty = true
	l.core.Apply(l.now, e)
}

// ended records how long a unit ran, before the core learns of its end.
func (l *loop) ended(key string) {
	if run, runs := l.core.RunOf(key); runs {
		l.estimates.ended(run.Queue, run.Declared, l.now.Sub(run.Since))
	}
}

// show passes units to the core.
func (l *loop) show(units []scheduler.Unit) {
	for _, u := range units {
		l.apply(scheduler.UnitChanged{Unit: u})
	}
}

func (l *loop) prove() {
	if !l.check || l.broken != nil {
		return
	}
	if err := l.core.Check(); err != nil {
		l.broken = fmt.Errorf("an invariant is broken; this is a bug, please report it: %w", err)
	}
}

// reportExcesses passes the exceeded limits to the source if they have changed.
func (l *loop) reportExcesses() {
	reporter, reports := l.source.(backend.ExcessReporter)
	if !reports {
		return
	}
	excesses, certain := l.core.Excesses()
	if l.excessesKnown && slices.Equal(excesses, l.excesses) || !l.excessesKnown && !certain {
		return
	}
	l.excesses, l.excessesKnown = excesses, true
	l.take(reporter.Report(excesses))
}

// publish passes the counts to the publisher, at most once per interval, and returns when it must
// be called again.
func (l *loop) publish() time.Time {
	if !l.dirty {
		l.measures.QuotaUnchanged()
		return time.Time{}
	}
	if l.now.Before(l.publishAt) {
		return l.publishAt
	}
	l.dirty, l.publishAt = false, l.now.Add(l.publishEvery)
	names, changed := l.core.QueueNames(), l.core.ChangedQueues(l.now)
	pending := l.core.Pending()
	l.publisher.set(names, changed, l.figures(pending))
	l.measures.show(l, names, changed, pending)
	return time.Time{}
}

// figures prepares the status of the objects of the quota; nil if there is nothing to write.
func (l *loop) figures(pending map[quota.NodeID]resources.Vector) func(context.Context) error {
	if writer, is := l.source.(backend.StatusWriter); is {
		return writer.PrepareStatus(pending)
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// Inputs from the informers.

func unitSeen(unit lenient.Object) input {
	return func(l *loop) {
		l.unreadable.see(l.logger, unit)
		u, err := l.reader.Read(unit)
		if err != nil {
			l.logger.Error(err, "Cannot read the unit; ignoring it")
			return
		}
		arrived := arrival.Unit[scheduler.Unit]{Key: u.Key, UID: u.UID, Value: u, Fresh: u.Phase == scheduler.Waiting && u.Reason == ""}
		if u.Phase == scheduler.Ended || u.Over {
			l.ended(u.Key)
		}
		if name := arrival.After(unit.GetAnnotations()); name != "" {
			arrived.After = unit.GetNamespace() + "/" + name
		}
		l.show(l.sequence.See(arrived, l.now))
	}
}

func unitGone(key string, uid string) input {
	return func(l *loop) {
		l.unreadable.gone(key)
		l.ended(key)
		l.estimates.gone(uid)
		l.apply(scheduler.UnitGone{Key: key, UID: uid})
		l.show(l.sequence.Gone(key))
	}
}

func queueSeen(q *schedulingv1alpha1.Queue) input {
	return func(l *loop) {
		l.apply(codec.Settings(q))
		// Its status may come from another writer, an earlier process, or a write that the cache has not shown yet.
		l.publisher.lookAt(q.Name)
		if m := l.publisher.moveFrom(q.Name); m != nil {
			l.moveSettings(q, m.to.Name)
		}
	}
}

func queueGone(name string) input {
	return func(l *loop) {
		l.apply(scheduler.QueueChanged{Queue: name})
		l.publisher.lookAt(name) // it is created again if its group still exists
	}
}

func checkSeen(c *schedulingv1alpha1.AdmissionCheck) input {
	e := scheduler.CheckChanged{Name: c.Name}
	if c.Spec.Timeout != nil {
		e.Timeout = max(c.Spec.Timeout.Duration, 0)
	}
	return func(l *loop) { l.apply(e) }
}

func checkGone(name string) input {
	return func(l *loop) { l.apply(scheduler.CheckGone{Name: name}) }
}

// leaseSeen is an input with the labels of the Lease of job-extensions.
func leaseSeen(labels map[string]string) input {
	return func(l *loop) { l.apply(scheduler.KindsChanged{Off: l.reader.Kinds.Off(labels)}) }
}

// unitsListed is put into the inbox after all existing units.
func unitsListed(l *loop) { l.apply(scheduler.Listed{}) }

// reported is an input that reports an event.
func reported(n backend.Notice) input { return func(l *loop) { l.emit(n) } }

// Inputs from the source.

// podSeen is an input about a pod, or about an object that pods belong to.
func podSeen(event func() scheduler.Event) input {
	return func(l *loop) {
		if e := event(); e != nil {
			l.apply(e)
		}
	}
}

// host returns what the loop offers its source.
func (l *loop) host(config *rest.Config) backend.Host {
	return backend.Host{Config: config, Clock: l.clock, Namespace: l.namespace, Names: l.names,
		Take: func(seen func() backend.Change) { l.inbox.put(quotaSeen(seen)) }, Moving: l.moving}
}

func quotaSeen(seen func() backend.Change) input {
	return func(l *loop) {
		l.taking.Lock()
		defer l.taking.Unlock()
		l.take(seen())
	}
}

// quotaListed is put into the inbox after all existing objects of the quota.
func quotaListed(l *loop) {
	l.listed = true
	quotaSeen(l.source.Listed)(l)
}

// allSeen returns an input that calls notify. It is put into the inbox after all existing objects.
func allSeen(notify func()) input { return func(*loop) { notify() } }

func (l *loop) take(change backend.Change) {
	if quota := change.Quota; quota != nil {
		l.logger.Info("Quota changed", "inForce", quota.Backend != nil)
		l.followRenames(quota.Last)
		l.followRenames(quota.Backend)
		l.apply(scheduler.QuotaChanged{Backend: quota.Backend, Missing: quota.Missing})
		l.dropMoves()
	}
	if change.Seen != nil {
		l.apply(scheduler.Observed{Seen: change.Seen})
	}
	for _, n := range change.Notices {
		l.emit(n)
	}
	l.dirty = true // the status of the objects of the quota may have changed
}
