package metrics

import "slices"

// Type of a metric.
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
	// Unit is the unit of the value.
	Unit string
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
	admissionAttempts  = "kube_queue_admission_attempts_total"
	evictions          = "kube_queue_evictions_total"
	requeues           = "kube_queue_requeues_total"
	rollbacks          = "kube_queue_rollbacks_total"
	quotaUsed          = "kube_queue_quota_used"
	quotaMin           = "kube_queue_quota_min"
	quotaMax           = "kube_queue_quota_max"
	quotaBorrowed      = "kube_queue_quota_borrowed"
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
	const amount = "cores, bytes or a count"
	return []Definition{
		{Name: pendingUnits, Type: Gauge, Labels: queue, Unit: "units", Programs: controller,
			Help: "Units that wait in a queue, including units held by users."},
		{Name: reservedUnits, Type: Gauge, Labels: queue, Unit: "units", Programs: controller,
			Help: "Units that hold quota and wait for their admission checks."},
		{Name: dequeuedUnits, Type: Gauge, Labels: queue, Unit: "units", Programs: controller,
			Help: "Admitted units with a job that does not run yet."},
		{Name: runningUnits, Type: Gauge, Labels: queue, Unit: "units", Programs: controller,
			Help: "Units with a running job."},
		{Name: queueWaiting, Type: Gauge, Labels: queue, Unit: "0 or 1", Programs: controller,
			Help: "1 while the queue has a front, which is a unit that waits only for quota. Units that are held by users or can never fit are never the front."},
		{Name: queueStopped, Type: Gauge, Labels: queue, Unit: "0 or 1", Programs: controller,
			Help: "1 while the queue is stopped by an administrator."},
		{Name: dequeues, Type: Counter, Labels: queue, Unit: "units", Programs: controller,
			Help: "Units admitted from the queue."},
		{Name: waitSeconds, Type: Histogram, Labels: []string{"queue", "framework"}, Unit: "seconds", Programs: controller,
			Help:    "Time from the submission of a job to its first admission, without waiting after an eviction.",
			Buckets: []float64{1, 10, minute, 5 * minute, 15 * minute, hour, 4 * hour, 12 * hour, day, 2 * day, 4 * day, 7 * day}},
		{Name: admissionAttempts, Type: Counter, Labels: []string{"result", "reason"}, Unit: "attempts", Programs: controller,
			Help: "Decisions written to units, by result. admitted: the unit got quota. refused: the unit waits; its reason is written after 1 s and whenever it changes. conflict: the unit had changed and is decided again."},
		{Name: evictions, Type: Counter, Labels: []string{"reason"}, Unit: "units", Programs: controller,
			Help: "Units that were evicted."},
		{Name: requeues, Type: Counter, Labels: []string{"reason"}, Unit: "units", Programs: controller,
			Help: "Units that gave their quota back. Reason Requeued: the unit is queued again. Any other reason says why it is not."},
		{Name: rollbacks, Type: Counter, Labels: []string{"write"}, Unit: "writes", Programs: controller,
			Help: "Decisions rolled back because the unit had changed (409) or was deleted (404)."},
		{Name: quotaUsed, Type: Gauge, Labels: node, Unit: amount, Programs: controller, collected: true,
			Help: "Quota used at and below a quota node by units, by pods that remain of jobs and, if they are charged, by pods without a unit."},
		{Name: quotaUnqueued, Type: Gauge, Labels: node, Unit: amount, Programs: controller, collected: true,
			Help: "Quota used at and below a quota node by pods without a unit."},
		{Name: quotaExcess, Type: Gauge, Labels: node, Unit: amount, Programs: controller, collected: true,
			Help: "Quota used by a quota node above its limit; 0 until this has lasted for 10 s, not counting pods that are being deleted."},
		{Name: quotaMin, Type: Gauge, Labels: node, Unit: amount, Programs: controller, collected: true,
			Help: "Guarantee of a quota node: its min."},
		{Name: quotaMax, Type: Gauge, Labels: node, Unit: amount, Programs: controller, collected: true,
			Help: "Effective limit of a quota node: its max multiplied by the oversell rate. With resourcequota: the lowest hard limit of the ResourceQuotas without scopes in the namespace."},
		{Name: quotaBorrowed, Type: Gauge, Labels: node, Unit: amount, Programs: controller, collected: true,
			Help: "Quota used by a quota node above its guarantee."},
		{Name: quotaInvalid, Type: Gauge, Unit: "0 or 1", Programs: controller,
			Help: "1 while the quota tree is invalid. The last valid tree, if any, stays in force."},
		{Name: resourceNames, Type: Gauge, Unit: "names", Programs: controller,
			Help: "Resource names in memory: those used by units, pods and quota, now or in the last 5 minutes."},
		{Name: decisionSeconds, Type: Histogram, Unit: "seconds", Programs: controller,
			Help:    "Duration of one pass of the scheduler, which processes events and decides.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5}},
		{Name: audits, Type: Counter, Unit: "audits", Programs: controller,
			Help: "Audits that recomputed used quota from units and pods and compared them with the caches."},
		{Name: violations, Type: Counter, Unit: "violations", Programs: controller,
			Help: "Differences that audits found and corrected; the log names the objects. Always 0 unless kube-queue has a defect."},
		{Name: safetyFlushes, Type: Counter, Unit: "flushes", Programs: controller,
			Help: "Attempts to admit all waiting units although nothing had changed."},
		{Name: safetyFlushRescues, Type: Counter, Unit: "shapes", Programs: controller,
			Help: "Request shapes that waited although they fit, found by safety flushes. Always 0 unless kube-queue has a defect."},

		{Name: jobsSeen, Type: Counter, Labels: framework, Unit: "jobs", Programs: extensions,
			Help: "Jobs for which a QueueUnit was created."},
		{Name: jobsReleased, Type: Counter, Labels: framework, Unit: "jobs", Programs: extensions,
			Help: "Releases of jobs. A job released again after an eviction counts again."},
		{Name: jobsFinished, Type: Counter, Labels: []string{"framework", "result"}, Unit: "jobs", Programs: extensions,
			Help: "Queued jobs that have finished, by result Succeeded or Failed."},
		{Name: releaseSeconds, Type: Histogram, Labels: framework, Unit: "seconds", Programs: extensions,
			Help:    "Time from the admission of a unit to the patch that unsuspends its job.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 60}},
		{Name: kindMissing, Type: Gauge, Labels: []string{"extension"}, Unit: "0 or 1", Programs: extensions,
			Help: "1 while job-extensions waits for the CRD of an enabled kind. Once found, 0, even if the CRD is removed later."},
		{Name: watchForbidden, Type: Gauge, Labels: []string{"resource"}, Unit: "0 or 1", Programs: extensions,
			Help: "1 while job-extensions lacks permission to list or watch a resource that it needs, so that, for example, jobs of a kind wait."},

		{Name: webhookRequests, Type: Counter, Labels: []string{"webhook", "result"}, Unit: "requests",
			Help: "Requests of API servers to a webhook, by result. patched: the job was held or the review answered. unchanged: the job was already held or the object is valid. refused: the object is invalid or the review has no answer. error: the request could not be read or answered, so the API server refused it."},
		{Name: webhookSeconds, Type: Histogram, Labels: []string{"webhook"}, Unit: "seconds",
			Help:    "Time that a webhook took to answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5}},
		{Name: webhookExpiry, Type: Gauge, Unit: "seconds since 1970",
			Help: "Expiry time of the certificate of the webhooks; 0 without webhooks."},

		{Name: apiWrites, Type: Counter, Labels: []string{"verb", "resource", "code"}, Unit: "requests",
			Help: "Write requests of the program to the API server, by HTTP status code. Code error: no response."},
		{Name: eventsDropped, Type: Counter, Labels: []string{"reason"}, Unit: "events",
			Help: "Events dropped because the API server refused them, by its reason. Forbidden: for example, an admission policy refuses events in the namespace."},
		{Name: leader, Type: Gauge, Labels: []string{"program"}, Unit: "0 or 1",
			Help: "1 while the process leads and is ready. 0 while it waits for the lease or for its caches."},
		{Name: buildInfo, Type: Gauge, Labels: []string{"program", "version", "go_version"}, Unit: "1",
			Help: "Constant 1, labelled with the running version."},
	}
}
