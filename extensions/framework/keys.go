package framework

// Keys on a job.
const (
	// SuspendAnnotation "true" asks for a job to be queued; released, it is "false".
	SuspendAnnotation = "scheduling.x-k8s.io/suspend"
	// PriorityAnnotation is an integer.
	PriorityAnnotation = "scheduling.x-k8s.io/priority"
	// PriorityClassKey, a label or an annotation, names a PriorityClass.
	PriorityClassKey = "scheduling.x-k8s.io/priority-class"
	// ActiveAnnotation "false" holds a job, or evicts it.
	ActiveAnnotation = "scheduling.x-k8s.io/active"
	// MaxExecTimeAnnotation is how many seconds the job may run.
	MaxExecTimeAnnotation = "scheduling.x-k8s.io/max-exec-time-seconds"
	// PreemptibleLabel "false" keeps a job within min.
	PreemptibleLabel = "kube-queue/preemptible"
	// QuotaNameLabel picks among the quota groups that list the namespace.
	QuotaNameLabel = "kube-queue/quota-name"
	// MinCountAnnotation is the smallest useful size of groups of pods: "podset=n,...".
	MinCountAnnotation = "kube-queue/min-count"
	// ManagedAnnotation "true" is put by the policy of managed namespaces on the
	// jobs that are created there.
	ManagedAnnotation = "kube-queue/managed"
	// ReleasedAnnotation is the attempt that the job was last released for.
	ReleasedAnnotation = "kube-queue/released"
	// KueueLabel says that another queue has the job.
	KueueLabel = "kueue.x-k8s.io/queue-name"
)

// Reasons that job-extensions itself writes.
const (
	// ReasonInvalidRequest, on a unit and as an event: what the job asks for
	// cannot be, until its owner mends it.
	ReasonInvalidRequest = "InvalidRequest"
	// ReasonResumed of condition Evicted=False: a job suspended by hand was
	// unsuspended by hand and stands in line again.
	ReasonResumed = "Resumed"
)

// Reasons of events on a job.
const (
	EventQueued      = "Queued"
	EventReleased    = "Released"
	EventRequeued    = "Requeued"
	EventHeldAgain   = "HeldAgain"
	EventHeldLate    = "HeldLate"
	EventLeftQueue   = "LeftQueue"
	EventUnitRefused = "QueueUnitRefused"
	EventUnsized     = "UnknownSize"
)
