package metrics

import (
	"cmp"
	"slices"
	"sync"
	"time"

	kubemetrics "k8s.io/component-base/metrics"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/generated/kinds"
)

// Results of attempts to admit.
const (
	resultAdmitted = "admitted"
	resultRefused  = "refused"
	resultConflict = "conflict"
	resultDenied   = "denied"
)

// Results of estimates.
const (
	estimateHeld   = "held"
	estimateMissed = "missed"
)

// requeued is the reason of a unit that is queued again.
const requeued = "Requeued"

// Controller records the metrics of kube-queue-controller. Reasons are those of the
// scheduling core. It is safe for concurrent use.
type Controller struct {
	registry *Registry
	decision kubemetrics.ObserverMetric
	quota    *quotaCollector

	mu sync.Mutex
	// queues are the queues that have series, with the reasons of their evictions.
	queues map[string]map[string]bool
}

// NewController returns the recorder for the registry of kube-queue-controller.
func NewController(r *Registry) *Controller {
	c := &Controller{registry: r, decision: r.histograms[decisionSeconds].WithLabelValues(), quota: newQuotaCollector(), queues: map[string]map[string]bool{}}
	r.kube.CustomMustRegister(c.quota)
	// Without this, the first forged admission would not be an increase, and there would be no alert.
	r.counters[evictions].WithLabelValues("", string(wellknown.ReasonNotAdmitted))
	for _, result := range [...]string{estimateHeld, estimateMissed} {
		r.counters[startEstimates].WithLabelValues(result)
	}
	return c
}

// Decided records the duration of a scheduling pass.
func (c *Controller) Decided(took time.Duration) { c.decision.Observe(took.Seconds()) }

// Dequeued counts a unit that was admitted from the queue. On its first admission it records
// the time since its submission.
func (c *Controller) Dequeued(queue, framework string, first bool, waited time.Duration) {
	c.attempt(resultAdmitted, "")
	c.initQueueSeries(queue)
	c.registry.counters[dequeues].WithLabelValues(queue).Inc()
	if first {
		c.registry.histograms[waitSeconds].WithLabelValues(queue, framework).Observe(max(waited, 0).Seconds())
	}
}

// Refused counts a write of the reason why a unit waits.
func (c *Controller) Refused(reason string) { c.attempt(resultRefused, reason) }

// Estimated counts a unit that was admitted after an estimate of its start was shown.
func (c *Controller) Estimated(held bool) {
	result := estimateMissed
	if held {
		result = estimateHeld
	}
	c.registry.counters[startEstimates].WithLabelValues(result).Inc()
}

// Evicted counts a unit of the queue that was evicted. The queue is empty if the unit has none.
func (c *Controller) Evicted(queue, reason string) {
	if queue != "" { // the series without a queue is never deleted
		c.initQueueSeries(queue, reason)
	}
	c.registry.counters[evictions].WithLabelValues(queue, reason).Inc()
}

// Requeued counts a unit that freed its quota. reason is why the unit is not queued again; empty if it is.
func (c *Controller) Requeued(reason string) {
	c.registry.counters[requeues].WithLabelValues(cmp.Or(reason, requeued)).Inc()
}

// RolledBack counts a write to a unit that had changed or was deleted; release reports whether it was an admission.
func (c *Controller) RolledBack(write string, release bool) {
	c.registry.counters[rollbacks].WithLabelValues(write).Inc()
	if release {
		c.attempt(resultConflict, "")
	}
}

// Denied counts an admission whose write the API server denied.
func (c *Controller) Denied() { c.attempt(resultDenied, "") }

func (c *Controller) attempt(result, reason string) {
	c.registry.counters[admissionAttempts].WithLabelValues(result, reason).Inc()
}

// Audited counts an audit.
func (c *Controller) Audited() { c.registry.counters[audits].WithLabelValues().Inc() }

// Violated counts a violation that an audit found.
func (c *Controller) Violated() { c.registry.counters[violations].WithLabelValues().Inc() }

// Flushed counts safety flushes and the request shapes that they found.
func (c *Controller) Flushed(flushes, rescued int) {
	c.registry.counters[safetyFlushes].WithLabelValues().Add(float64(flushes))
	c.registry.counters[safetyFlushRescues].WithLabelValues().Add(float64(rescued))
}

// Queue is the current state of a queue.
type Queue struct {
	Name                                 string
	Pending, Reserved, Dequeued, Running int
	// Waiting is whether the queue has a front. Stopped is whether an administrator has stopped it.
	Waiting, Stopped bool
	// First and Mean are the earliest and the mean submission time of the queued units; zero if there are none.
	First, Mean time.Time
}

// Queue sets the state of a queue. It also creates the counters of admissions, forged admissions and evictions for
// other units at 0, so that Prometheus detects the first increase.
func (c *Controller) Queue(q Queue) {
	for _, reason := range []wellknown.Reason{wellknown.ReasonNotAdmitted, wellknown.ReasonPreempted, wellknown.ReasonReclaimed} {
		c.initQueueSeries(q.Name, string(reason))
		c.registry.counters[evictions].WithLabelValues(q.Name, string(reason))
	}
	set := func(name string, value float64) { c.registry.gauges[name].WithLabelValues(q.Name).Set(value) }
	set(pendingUnits, float64(q.Pending))
	set(reservedUnits, float64(q.Reserved))
	set(dequeuedUnits, float64(q.Dequeued))
	set(runningUnits, float64(q.Running))
	set(queueWaiting, truth(q.Waiting))
	set(queueStopped, truth(q.Stopped))
	c.registry.counters[dequeues].WithLabelValues(q.Name)
	if q.First.IsZero() {
		c.registry.gauges[firstSubmission].Delete(map[string]string{"queue": q.Name})
		c.registry.gauges[meanSubmission].Delete(map[string]string{"queue": q.Name})
		return
	}
	set(firstSubmission, float64(q.First.Unix()))
	set(meanSubmission, float64(q.Mean.UnixMicro())/1e6)
}

// initQueueSeries records that the queue has series, and eviction series for these reasons.
func (c *Controller) initQueueSeries(queue string, evictedFor ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queues[queue] == nil {
		c.queues[queue] = map[string]bool{}
	}
	for _, reason := range evictedFor {
		c.queues[queue][reason] = true
	}
}

// KeepQueues deletes the series of all other queues.
func (c *Controller) KeepQueues(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(names) == len(c.queues) && !slices.ContainsFunc(names, func(name string) bool { return c.queues[name] == nil }) {
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

// forget deletes the series of a queue one by one. Searching for them among the series of
// thousands of queues would be slow when a complete tree is removed.
func (c *Controller) forget(queue string) {
	labels := map[string]string{"queue": queue}
	for _, name := range []string{pendingUnits, reservedUnits, dequeuedUnits, runningUnits, queueWaiting, queueStopped, firstSubmission, meanSubmission} {
		c.registry.gauges[name].Delete(labels)
	}
	c.registry.counters[dequeues].Delete(labels)
	for reason := range c.queues[queue] {
		c.registry.counters[evictions].Delete(map[string]string{"queue": queue, "reason": reason})
	}
	for _, framework := range append(kinds.All(), other) {
		labels["framework"] = framework
		c.registry.histograms[waitSeconds].Delete(labels)
	}
}

// ResourceNames sets the number of names of resources in memory.
func (c *Controller) ResourceNames(names int) {
	c.registry.gauges[resourceNames].WithLabelValues().Set(float64(names))
}

// Quota sets the state of the quota, and whether the quota tree is invalid. The state is retained and must not be
// modified.
func (c *Controller) Quota(q Quota, invalid bool) {
	c.quota.show(q)
	c.registry.gauges[quotaInvalid].WithLabelValues().Set(truth(invalid))
}

// QuotaChanges records that usage may change from now on, until Quota or QuotaUnchanged is called.
func (c *Controller) QuotaChanges(now time.Time) { c.quota.changes(now) }

// QuotaUnchanged records that the state of the last call of Quota is still the current one.
func (c *Controller) QuotaUnchanged() { c.quota.unchanged() }
