package wellknown

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
	// MinResourcesAnnotation says what a Workflow needs: a map of resources to
	// quantities, in YAML or JSON.
	MinResourcesAnnotation = "kube-queue/min-resources"
	// KueueLabel says that another queue has the job.
	KueueLabel = "kueue.x-k8s.io/queue-name"
)

// Keys on a job that kube-queue writes.
const (
	// ManagedAnnotation "true" is put by the policy of managed namespaces on the
	// jobs that are created there.
	ManagedAnnotation = "kube-queue/managed"
	// ReleasedAnnotation is the attempt that the job was last released for.
	ReleasedAnnotation = "kube-queue/released"
	// ShutdownAnnotation "false" says that a RayJob's owner did not ask for
	// shutdownAfterJobFinishes: it is set while the job is held only.
	ShutdownAnnotation = "kube-queue/shutdown-after-job-finishes"
)

// AfterAnnotation names, on a unit, the one of its namespace that was being created when
// its own creation began, for a job that came before. Free quota is offered to that one
// first; a unit that never comes is waited for no longer than a second.
const AfterAnnotation = "kube-queue/after"

// Parameters of a ProvisioningRequest are annotations with a prefix. A unit
// carries those of its job, always with our own prefix: whoever makes the request
// knows units only.
const (
	ParameterPrefix      = "provreq.kube-queue/"
	KueueParameterPrefix = "provreq.kueue.x-k8s.io/"
)

// MaxJobsResource, in a node's max, limits the number of units that hold quota under
// the node.
const MaxJobsResource = "kube-queue/max-jobs"
