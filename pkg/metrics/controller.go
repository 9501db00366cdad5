package metrics

import (
	"slices"
	"sync"
	"time"

	kubemetrics "k8s.io/component-base/metrics"

	"kube-queue.dev/kube-queue/pkg/generated/kinds"
)

// Results of attempts to admit.
const (
	resultAdmitted = "admitted"
	resultRefused  = "refused"
	resultConflict = "conflict"
)

// requeued is the reason of a unit that stands in line again.
const requeued = "Requeued"

// Controller is what kube-queue-controller counts with. Reasons are the machine reasons
// of the core. Safe for concurrent use.
type Controller struct {
	registry *Registry
	decision kubemetrics.ObserverMetric
	quota    *quotaCollector

	mu sync.Mutex
	// queues are those that metrics report.
	queues map[string]bool
}

// NewController makes what counts into the registry, which is that of the controller.
func NewController(r *Registry) *Controller {
	c := &Controller{registry: r, decision: r.histograms[decisionSeconds].WithLabelValues(), quota: newQuotaCollector(), queues: map[string]bool{}}
	r.kube.CustomMustRegister(c.quota)
	return c
}

// Decided takes in how long a pass took.
func (c *Controller) Decided(took time.Duration) { c.decision.Observe(took.Seconds()) }

// Dequeued takes in that a unit was released from the queue, the first time after it had
// waited so long since its submission.
func (c *Controller) Dequeued(queue, framework string, first bool, waited time.Duration) {
	c.attempt(resultAdmitted, "")
	c.initQueueSeries(queue)
	c.registry.counters[dequeues].WithLabelValues(queue).Inc()
	if first {
		c.registry.histograms[waitSeconds].WithLabelValues(queue, framework).Observe(max(waited, 0).Seconds())
	}
}

// Refused takes in that a unit was reported why it waits.
func (c *Controller) Refused(reason string) { c.attempt(resultRefused, reason) }

// Evicted takes in that a unit was instructed to give its quota back.
func (c *Controller) Evicted(reason string) {
	c.registry.counters[evictions].WithLabelValues(reason).Inc()
}

// Requeued takes in that a unit gave its quota back; the reason is why it does not stand
// in line again, empty when it does.
func (c *Controller) Requeued(reason string) {
	if reason == "" {
		reason = requeued
	}
	c.registry.counters[requeues].WithLabelValues(reason).Inc()
}

// RolledBack takes in that a write of this kind was refused, of a release or not.
func (c *Controller) RolledBack(write string, release bool) {
	c.registry.counters[rollbacks].WithLabelValues(write).Inc()
	if release {
		c.attempt(resultConflict, "")
	}
}

func (c *Controller) attempt(result, reason string) {
	c.registry.counters[admissionAttempts].WithLabelValues(result, reason).Inc()
}

// Audited takes in how many invariants an audit found broken.
func (c *Controller) Audited(broken int) {
	c.registry.counters[audits].WithLabelValues().Inc()
	c.registry.counters[violations].WithLabelValues().Add(float64(broken))
}

// Flushed takes in safety flushes, and how many shapes they found.
func (c *Controller) Flushed(flushes, rescued int) {
	c.registry.counters[safetyFlushes].WithLabelValues().Add(float64(flushes))
	c.registry.counters[safetyFlushRescues].WithLabelValues().Add(float64(rescued))
}

// Queue is how a queue is now.
type Queue struct {
	Name                                 string
	Pending, Reserved, Dequeued, Running int
	// Waiting: a unit is in front. Stopped: by an administrator.
	Waiting, Stopped bool
}

// Queue shows how a queue is from now on. Its releases are there before the first, so that
// that is seen as one.
func (c *Controller) Queue(q Queue) {
	c.initQueueSeries(q.Name)
	set := func(name string, value float64) { c.registry.gauges[name].WithLabelValues(q.Name).Set(value) }
	set(pendingUnits, float64(q.Pending))
	set(reservedUnits, float64(q.Reserved))
	set(dequeuedUnits, float64(q.Dequeued))
	set(runningUnits, float64(q.Running))
	set(queueWaiting, truth(q.Waiting))
	set(queueStopped, truth(q.Stopped))
	c.registry.counters[dequeues].WithLabelValues(q.Name)
}

func (c *Controller) initQueueSeries(queue string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queues[queue] = true
}

// KeepQueues forgets all that reports queues other than these.
func (c *Controller) KeepQueues(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(names) == len(c.queues) && !slices.ContainsFunc(names, func(name string) bool { return !c.queues[name] }) {
		return
	}
	keep := make(map[string]bool, len(names))
	for _, name := range names {
		keep[name] = true
	}
	for name := range c.queues {
		if !keep[name] {
			c.forget(name)
			delete(c.queues, name)
		}
	}
}

// forget names each series, for to look for them among those of a thousand queues would
// take long where a whole tree goes.
func (c *Controller) forget(queue string) {
	labels := map[string]string{"queue": queue}
	for _, name := range []string{pendingUnits, reservedUnits, dequeuedUnits, runningUnits, queueWaiting, queueStopped} {
		c.registry.gauges[name].Delete(labels)
	}
	c.registry.counters[dequeues].Delete(labels)
	for _, framework := range append(kinds.All(), other) {
		labels["framework"] = framework
		c.registry.histograms[waitSeconds].Delete(labels)
	}
}

// Quota shows how the quota is from now on, and whether it is invalid as it is written.
// The nodes are kept, and must not be changed.
func (c *Controller) Quota(nodes []Node, invalid bool) {
	c.quota.show(nodes)
	c.registry.gauges[quotaInvalid].WithLabelValues().Set(truth(invalid))
}
