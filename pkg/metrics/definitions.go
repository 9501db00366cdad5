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

// Definition is all that there is to know of a metric.
type Definition struct {
	Name   string
	Type   Type
	Labels []string
	// Unit of the value.
	Unit string
	// Help is one sentence or two, for the table and for /metrics.
	Help string
	// Programs that have it; nil for all.
	Programs []string
	// Buckets of a histogram.
	Buckets []float64
	// collected metrics are made at each scrape of what was shown last.
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
	quotaInvalid       = "kube_queue_quota_invalid"
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

	apiWrites = "kube_queue_api_writes_total"
	leader    = "kube_queue_leader"
	buildInfo = "kube_queue_build_info"
)

const (
	minute = 60.0
	hour   = 60 * minute
	day    = 24 * hour
)

// Definitions of all metrics, in the order of the documentation.
func Definitions() []Definition {
	controller, extensions := []string{ControllerProgram}, []string{ExtensionsProgram}
	queue, framework, node := []string{"queue"}, []string{"framework"}, []string{"node", "resource"}
	const amount = "cores, bytes or a count"
	return []Definition{
		{Name: pendingUnits, Type: Gauge, Labels: queue, Unit: "units", Programs: controller,
			Help: "Units that wait in a queue, those that their users hold as well."},
		{Name: reservedUnits, Type: Gauge, Labels: queue, Unit: "units", Programs: controller,
			Help: "Units that hold quota and wait for their admission checks."},
		{Name: dequeuedUnits, Type: Gauge, Labels: queue, Unit: "units", Programs: controller,
			Help: "Units that are released and do not run yet."},
		{Name: runningUnits, Type: Gauge, Labels: queue, Unit: "units", Programs: controller,
			Help: "Units whose jobs run."},
		{Name: queueWaiting, Type: Gauge, Labels: queue, Unit: "0 or 1", Programs: controller,
			Help: "1 while a unit is in front of the queue: one that only lacks room. Those that their users hold, and those that no free room would help, are never in front."},
		{Name: queueStopped, Type: Gauge, Labels: queue, Unit: "0 or 1", Programs: controller,
			Help: "1 while an administrator has stopped the queue."},
		{Name: dequeues, Type: Counter, Labels: queue, Unit: "units", Programs: controller,
			Help: "Releases from a queue."},
		{Name: waitSeconds, Type: Histogram, Labels: []string{"queue", "framework"}, Unit: "seconds", Programs: controller,
			Help:    "How long units waited from the submission of their job to its first release. What an evicted one waits again is not in it.",
			Buckets: []float64{1, 10, minute, 5 * minute, 15 * minute, hour, 4 * hour, 12 * hour, day, 2 * day, 4 * day, 7 * day}},
		{Name: admissionAttempts, Type: Counter, Labels: []string{"result", "reason"}, Unit: "attempts", Programs: controller,
			Help: "Decisions that were written to units. Result admitted: released; refused: reported for what reason it waits, after 1 s, and again when the reason has changed; conflict: the unit had changed meanwhile, and is decided on again."},
		{Name: evictions, Type: Counter, Labels: []string{"reason"}, Unit: "units", Programs: controller,
			Help: "Units that were instructed to give their quota back."},
		{Name: requeues, Type: Counter, Labels: []string{"reason"}, Unit: "units", Programs: controller,
			Help: "Units that gave their quota back. Reason Requeued: they stand in line again; any other says why they do not."},
		{Name: rollbacks, Type: Counter, Labels: []string{"write"}, Unit: "writes", Programs: controller,
			Help: "Decisions taken back because the unit had changed (409) or was gone (404) when they were to be written."},
		{Name: quotaUsed, Type: Gauge, Labels: node, Unit: amount, Programs: controller, collected: true,
			Help: "What units at and below a node of the quota hold."},
		{Name: quotaMin, Type: Gauge, Labels: node, Unit: amount, Programs: controller, collected: true,
			Help: "What a node of the quota is guaranteed."},
		{Name: quotaMax, Type: Gauge, Labels: node, Unit: amount, Programs: controller, collected: true,
			Help: "The limit of a node of the quota that is in force: its max times the oversell rate; with resourcequota the lowest hard of the namespace's quotas without scopes."},
		{Name: quotaBorrowed, Type: Gauge, Labels: node, Unit: amount, Programs: controller, collected: true,
			Help: "What is used at a node of the quota above its min."},
		{Name: quotaInvalid, Type: Gauge, Unit: "0 or 1", Programs: controller,
			Help: "1 while the quota tree is invalid as it is written, so that its last valid version, or none, is in force."},
		{Name: decisionSeconds, Type: Histogram, Unit: "seconds", Programs: controller,
			Help:    "How long the scheduler took for one pass: to take in what had happened, and to decide.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5}},
		{Name: audits, Type: Counter, Unit: "audits", Programs: controller,
			Help: "How often it was proved that used quota is the sum of what units hold."},
		{Name: violations, Type: Counter, Unit: "violations", Programs: controller,
			Help: "Invariants that an audit found broken; the log names them. Stays 0 unless there is a defect."},
		{Name: safetyFlushes, Type: Counter, Unit: "flushes", Programs: controller,
			Help: "How often all that waits was tried though nothing had changed."},
		{Name: safetyFlushRescues, Type: Counter, Unit: "shapes", Programs: controller,
			Help: "Sizes of units that such a flush found waiting though they fit. Stays 0 unless there is a defect."},

		{Name: jobsSeen, Type: Counter, Labels: framework, Unit: "jobs", Programs: extensions,
			Help: "Jobs that were put in line."},
		{Name: jobsReleased, Type: Counter, Labels: framework, Unit: "jobs", Programs: extensions,
			Help: "Jobs that were released; one that was evicted counts again."},
		{Name: jobsFinished, Type: Counter, Labels: []string{"framework", "result"}, Unit: "jobs", Programs: extensions,
			Help: "Queued jobs that have ended, by result Succeeded or Failed."},
		{Name: releaseSeconds, Type: Histogram, Labels: framework, Unit: "seconds", Programs: extensions,
			Help:    "Time from the decision to release a unit to the patch that lets its job run.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 60}},
		{Name: kindMissing, Type: Gauge, Labels: []string{"extension"}, Unit: "0 or 1", Programs: extensions,
			Help: "1 for an enabled kind whose CRD was not installed when job-extensions last looked. 0 once it was found: nobody looks again, so that it stays 0 when the CRD is removed later."},

		{Name: apiWrites, Type: Counter, Labels: []string{"verb", "resource", "code"}, Unit: "requests",
			Help: "Requests of the program that change something, by the HTTP status of the answer; code error: there was none."},
		{Name: leader, Type: Gauge, Labels: []string{"program"}, Unit: "0 or 1",
			Help: "1 while the process works: it leads and is ready. 0 while it stands by for the lease, and while it leads and does not know the cluster yet."},
		{Name: buildInfo, Type: Gauge, Labels: []string{"program", "version", "go_version"}, Unit: "1",
			Help: "1 for the version that runs."},
	}
}
