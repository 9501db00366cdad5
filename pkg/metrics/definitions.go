package metrics

import "slices"

// Type is the type of a metric.
type Type string

// The types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// The programs, by their names.
const (
	ControllerProgram = "kube-queue-controller"
	ExtensionsProgram = "job-extensions"
)

// Definition describes a metric.
type Definition struct {
	Name   string
	Type   Type
	Labels []string
	// Help is a short description, for the documentation and for /metrics.
	Help string
	// Programs lists the programs that have the metric; nil for all.
	Programs []string
	// Buckets are the buckets of a histogram.
	Buckets []float64
	// collected metrics are created at each scrape from the latest data.
	collected bool
}

func (d Definition) in(program string) bool {
	return d.Programs == nil || slices.Contains(d.Programs, program)
}

// Names of the metrics.
const (
	pendingUnits       = "kube_queue_pending_units"
	reservedUnits      = "kube_queue_reserved_units"
	dequeuedUnits      = "kube_queue_dequeued_units"
	runningUnits       = "kube_queue_running_units"
	queueWaiting       = "kube_queue_queue_waiting"
	queueStopped       = "kube_queue_queue_stopped"
	dequeues           = "kube_queue_dequeues_total"
	waitSeconds        = "kube_queue_wait_seconds"
	startEstimates     = "kube_queue_start_estimates_total"
	firstSubmission    = "kube_queue_first_submission_timestamp_seconds"
	meanSubmission     = "kube_queue_mean_submission_timestamp_seconds"
	admissionAttempts  = "kube_queue_admission_attempts_total"
	evictions          = "kube_queue_evictions_total"
	requeues           = "kube_queue_requeues_total"
	rollbacks          = "kube_queue_rollbacks_total"
	quotaUsed          = "kube_queue_quota_used"
	quotaMin           = "kube_queue_quota_min"
	quotaMax           = "kube_queue_quota_max"
	quotaBorrowed      = "kube_queue_quota_borrowed"
	quotaUsedSeconds   = "kube_queue_quota_used_seconds_total"
	quotaLent          = "kube_queue_quota_lent"
	quotaPending       = "kube_queue_quota_pending"
	quotaUnqueued      = "kube_queue_quota_unqueued"
	quotaExcess        = "kube_queue_quota_excess"
	quotaInvalid       = "kube_queue_quota_invalid"
	resourceNames      = "kube_queue_resource_names"
	decisionSeconds    = "kube_queue_decision_duration_seconds"
	audits             = "kube_queue_audits_total"
	violations         = "kube_queue_invariant_violations_total"
	safetyFlushes      = "kube_queue_safety_flushes_total"
	safetyFlushRescues = "kube_queue_safety_flush_rescues_total"

	jobsSeen       = "kube_queue_jobs_seen_total"
	jobsReleased   = "kube_queue_jobs_released_total"
	jobsFinished   = "kube_queue_jobs_finished_total"
	releaseSeconds = "kube_queue_release_duration_seconds"
	kindMissing    = "kube_queue_kind_missing"
	watchForbidden = "kube_queue_watch_forbidden"

	webhookRequests = "kube_queue_webhook_requests_total"
	webhookSeconds  = "kube_queue_webhook_duration_seconds"
	webhookExpiry   = "kube_queue_webhook_certificate_expiry_timestamp_seconds"

	apiWrites     = "kube_queue_api_writes_total"
	eventsDropped = "kube_queue_events_dropped_total"
	leader        = "kube_queue_leader"
	buildInfo     = "kube_queue_build_info"
)

const (
	minute = 60.0
	hour   = 60 * minute
	day    = 24 * hour
)

// Definitions returns all metrics in the order of the documentation.
func Definitions() []Definition {
	controller, extensions := []string{ControllerProgram}, []string{ExtensionsProgram}
	queue, framework, node := []string{"queue"}, []string{"framework"}, []string{"node", "resource"}
	return []Definition{
		{Name: pendingUnits, Type: Gauge, Labels: queue, Programs: controller,
			Help: "Units that wait in a queue, including units held by users."},
		{Name: reservedUnits, Type: Gauge, Labels: queue, Programs: controller,
			Help: "Units that hold quota and wait for their admission checks."},
		{Name: dequeuedUnits, Type: Gauge, Labels: queue, Programs: controller,
			Help: "Admitted units with a job that does not run yet."},
		{Name: runningUnits, Type: Gauge, Labels: queue, Programs: controller,
			Help: "Units with a running job."},
		{Name: queueWaiting, Type: Gauge, Labels: queue, Programs: controller,
			Help: "1 while the queue has a unit that waits only for quota. Units that are held by users or can never fit do not count."},
		{Name: queueStopped, Type: Gauge, Labels: queue, Programs: controller,
			Help: "1 while the queue is stopped."},
		{Name: dequeues, Type: Counter, Labels: queue, Programs: controller,
			Help: "Units admitted from the queue."},
		{Name: waitSeconds, Type: Histogram, Labels: []string{"queue", "framework"}, Programs: controller,
			Help:    "Time from the submission of a job to its first admission.",
			Buckets: []float64{1, 10, minute, 5 * minute, 15 * minute, hour, 4 * hour, 12 * hour, day, 2 * day, 4 * day, 7 * day}},
		{Name: startEstimates, Type: Counter, Labels: []string{"result"}, Programs: controller,
			Help: "Units that were admitted after an estimate of their start was shown. held: within the range of the first estimate. missed: earlier or later."},
		{Name: firstSubmission, Type: Gauge, Labels: queue, Programs: controller,
			Help: "Submission time of the queued unit that has waited longest, to the second. Units that can never fit count as queued; units held by users do not. Absent if no unit is queued."},
		{Name: meanSubmission, Type: Gauge, Labels: queue, Programs: controller,
			Help: "Mean submission time of the queued units."},
		{Name: admissionAttempts, Type: Counter, Labels: []string{"result", "reason"}, Programs: controller,
			Help: "Decisions written to units. admitted: the unit got quota. refused: the unit waits with a new reason. conflict: the unit had changed and is decided again. denied: the unit cannot be written, and is tried again later."},
		{Name: evictions, Type: Counter, Labels: []string{"queue", "reason"}, Programs: controller,
			Help: "Units that were evicted. queue is empty for units without a queue."},
		{Name: requeues, Type: Counter, Labels: []string{"reason"}, Programs: controller,
			Help: "Units that gave their quota back. Requeued: the unit is queued again. Other reasons say why it is not."},
		{Name: rollbacks, Type: Counter, Labels: []string{"write"}, Programs: controller,
			Help: "Decisions rolled back because the unit had changed (409) or was deleted (404)."},
		{Name: quotaUsed, Type: Gauge, Labels: node, Programs: controller, collected: true,
			Help: "Quota used at and below a quota node."},
		{Name: quotaUsedSeconds, Type: Counter, Labels: []string{"node", "job_namespace", "resource"}, Programs: controller, collected: true,
			Help: "Quota used over time by a namespace: core-seconds, GPU-seconds, byte-seconds. Quotas below the node have their own series. Counted from the start of the controller. A day after its last use, a series ends."},
		{Name: quotaPending, Type: Gauge, Labels: node, Programs: controller, collected: true,
			Help: "Requests of the queued units at and below a quota node."},
		{Name: quotaUnqueued, Type: Gauge, Labels: node, Programs: controller, collected: true,
			Help: "Quota used by pods without a unit."},
		{Name: quotaExcess, Type: Gauge, Labels: node, Programs: controller, collected: true,
			Help: "Quota used above the limit for 10 s or longer, without pods that are being deleted."},
		{Name: quotaMin, Type: Gauge, Labels: node, Programs: controller, collected: true,
			Help: "Min of a quota node."},
		{Name: quotaMax, Type: Gauge, Labels: node, Programs: controller, collected: true,
			Help: "Max of a quota node, multiplied by the oversell rate. With resourcequota: the lowest hard limit of the ResourceQuotas without scopes."},
		{Name: quotaBorrowed, Type: Gauge, Labels: node, Programs: controller, collected: true,
			Help: "Quota used above the guarantee."},
		{Name: quotaLent, Type: Gauge, Labels: node, Programs: controller, collected: true,
			Help: "The part of the min of a quota node that the node does not use and its siblings have borrowed."},
		{Name: quotaInvalid, Type: Gauge, Programs: controller,
			Help: "1 while the quota tree is invalid."},
		{Name: resourceNames, Type: Gauge, Programs: controller,
			Help: "Resource names that units, pods and quota used in the last 5 minutes."},
		{Name: decisionSeconds, Type: Histogram, Programs: controller,
			Help:    "Duration of one pass of the scheduler.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5}},
		{Name: audits, Type: Counter, Programs: controller,
			Help: "Audits that recomputed used quota and compared it with the caches."},
		{Name: violations, Type: Counter, Programs: controller,
			Help: "Differences that audits found and corrected. Above 0, kube-queue has a defect."},
		{Name: safetyFlushes, Type: Counter, Programs: controller,
			Help: "Attempts to admit all waiting units when nothing has changed."},
		{Name: safetyFlushRescues, Type: Counter, Programs: controller,
			Help: "Request shapes that fit but waited until a safety flush. Above 0, kube-queue has a defect."},

		{Name: jobsSeen, Type: Counter, Labels: framework, Programs: extensions,
			Help: "Jobs that got a QueueUnit."},
		{Name: jobsReleased, Type: Counter, Labels: framework, Programs: extensions,
			Help: "Releases of jobs, including those after an eviction."},
		{Name: jobsFinished, Type: Counter, Labels: []string{"framework", "result"}, Programs: extensions,
			Help: "Queued jobs that have finished: Succeeded or Failed."},
		{Name: releaseSeconds, Type: Histogram, Labels: framework, Programs: extensions,
			Help:    "Time from the admission of a unit to the patch that unsuspends its job.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 60}},
		{Name: kindMissing, Type: Gauge, Labels: []string{"extension"}, Programs: extensions,
			Help: "1 while job-extensions waits for the CRD of an enabled kind. It stays 0 if the CRD is removed later."},
		{Name: watchForbidden, Type: Gauge, Labels: []string{"resource"}, Programs: extensions,
			Help: "1 while job-extensions lacks permission to list or watch a resource that it needs."},

		{Name: webhookRequests, Type: Counter, Labels: []string{"webhook", "result"},
			Help: "Requests to a webhook. patched: the job was held or the review answered. unchanged: the job was already held or the object is valid. refused: the object is invalid or the review has no answer. error: the request failed."},
		{Name: webhookSeconds, Type: Histogram, Labels: []string{"webhook"},
			Help:    "Time that a webhook took to answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5}},
		{Name: webhookExpiry, Type: Gauge,
			Help: "When the certificate of the webhooks expires; 0 without webhooks."},

		{Name: apiWrites, Type: Counter, Labels: []string{"verb", "resource", "code"},
			Help: "Write requests to the API server, by HTTP status code. error: no response."},
		{Name: eventsDropped, Type: Counter, Labels: []string{"reason"},
			Help: "Events dropped because the API server refused them, by its reason."},
		{Name: leader, Type: Gauge, Labels: []string{"program"},
			Help: "1 while the process leads and is ready. 0 while it waits for the lease or for its caches."},
		{Name: buildInfo, Type: Gauge, Labels: []string{"program", "version", "go_version"},
			Help: "Constant 1, labelled with the running version."},
	}
}
