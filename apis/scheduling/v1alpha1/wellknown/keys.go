package wellknown

// The prefixes of the keys on a job. Others use the first one too.
const (
	SchedulingPrefix = "scheduling.x-k8s.io/"
	Prefix           = "kube-queue/"
)

// Keys on a job.
const (
	// SuspendAnnotation "true" is the mark with which a job opts in. A released job has "false", or keeps "true" if
	// its owner applies it on the server: another value would be a conflict.
	SuspendAnnotation = "scheduling.x-k8s.io/suspend"
	// PriorityAnnotation is the priority of the job, an integer.
	PriorityAnnotation = "scheduling.x-k8s.io/priority"
	// PriorityClassKey is a label or an annotation that names a PriorityClass.
	PriorityClassKey = "scheduling.x-k8s.io/priority-class"
	// ActiveAnnotation "false" holds a queued job and evicts a released one.
	ActiveAnnotation = "scheduling.x-k8s.io/active"
	// MaxExecTimeAnnotation is the number of seconds that the job may run.
	MaxExecTimeAnnotation = "scheduling.x-k8s.io/max-exec-time-seconds"
	// ExpectedRunTimeAnnotation is the number of seconds that the owner expects the job to run. It enforces nothing.
	ExpectedRunTimeAnnotation = "scheduling.x-k8s.io/expected-run-time-seconds"
	// PreemptibleLabel "false" limits a job to the min of its quota.
	PreemptibleLabel = "kube-queue/preemptible"
	// QuotaNameLabel selects one of the quota groups that list the namespace.
	QuotaNameLabel = "kube-queue/quota-name"
	// MinCountAnnotation is the smallest useful number of pods per pod set: "podset=n,...".
	MinCountAnnotation = "kube-queue/min-count"
	// MinResourcesAnnotation is the request of a Workflow: a map of resources to quantities, in
	// YAML or JSON.
	MinResourcesAnnotation = "kube-queue/min-resources"
	// BypassAnnotation "true" takes a job out of the queue. In a managed namespace it requires
	// the verb "bypass" on queueunits.
	BypassAnnotation = "kube-queue/bypass"
	// KueueLabel means that Kueue manages the job.
	KueueLabel = "kueue.x-k8s.io/queue-name"
	// PodGroupLabel is the name of the group that a pod belongs to, and PodGroupSizeAnnotation the number of pods of the
	// group. All pods of a group are one job.
	PodGroupLabel          = "kube-queue/pod-group"
	PodGroupSizeAnnotation = "kube-queue/pod-group-size"
)

// Keys on a job that kube-queue writes.
const (
	// GatedLabel "true" is on the pods that an admission policy has given PodGate. It stays after the release.
	GatedLabel = "kube-queue/gated"
	// ManagedKey "true" is the label of managed namespaces, in which every job is queued, and the annotation that an
	// admission policy sets on these jobs.
	ManagedKey = "kube-queue/managed"
	// NotPartOfAnnotation is the UID of a controller of which the job is not a part: the job
	// is queued although the object controls it. An admission policy sets it in managed
	// namespaces. Operators copy annotations to the parts of a job, which have another
	// controller.
	NotPartOfAnnotation = "kube-queue/not-part-of"
	// ReleasedAnnotation is the attempt with which the job was last released. On a pod at the gate, "/", the UID of the
	// job, "/" and the pod set follow: a group has the UID of the pod that started it. On a unit it means that the
	// unit replaces one that was lost, of a job that runs.
	ReleasedAnnotation = "kube-queue/released"
	// GrowthAnnotation, on the pods of a job whose growth is gated, is their pod set. The release adds it to their templates.
	GrowthAnnotation = "kube-queue/growth"
	// ResumedAnnotation "true" means that somebody has unsuspended a job that was released before, and that a policy
	// has suspended it again. A job that was suspended by hand is then queued again.
	ResumedAnnotation = "kube-queue/resumed"
	// PodAnnotationsAnnotation lists the annotations of pods that the last release added for admission
	// checks, as KEY=PODSET:PODSET,KEY=PODSET. The next release removes those that it does not set.
	PodAnnotationsAnnotation = "kube-queue/pod-annotations"
	// OriginalCountAnnotation and AdmittedCountAnnotation are on a job that was released with fewer pods
	// than it requests, as PODSET=NUMBER: the number that it requests, and the one that it was released
	// with. While its field has the latter, the former counts. It is restored when the job is suspended.
	OriginalCountAnnotation = "kube-queue/original-count"
	AdmittedCountAnnotation = "kube-queue/admitted-count"
	// ShutdownAnnotation "false" means that the owner of a RayJob did not set
	// shutdownAfterJobFinishes, so that it is set only while the job is held.
	ShutdownAnnotation = "kube-queue/shutdown-after-job-finishes"
)

// PodGate is the scheduling gate at which a pod waits.
const PodGate = "scheduling.x-k8s.io/kube-queue"

// RevisionAnnotation, of an Event that is kept, is a digest of what it says.
const RevisionAnnotation = "kube-queue/revision"

// AfterAnnotation of a unit names the unit of an earlier job of the same namespace that was still
// being created when the creation of this unit began. Free quota is offered to the earlier unit
// first. The controller waits at most one second for it.
const AfterAnnotation = "kube-queue/after"

// KindLabel of a unit is the kind of its job, for label selectors. It is set when the unit is created and
// decides nothing. Units of releases up to 0.2.0 and units that are created by hand may lack it.
const KindLabel = "kube-queue/kind"

// Parameters of a ProvisioningRequest are annotations with one of these prefixes. A unit carries
// the parameters of its job, always with ParameterPrefix, because the ProvisioningRequest is
// created from the unit alone.
const (
	ParameterPrefix      = "provreq.kube-queue/"
	KueueParameterPrefix = "provreq.kueue.x-k8s.io/"
)

// ProvisioningController is the controllerName of AdmissionChecks that job-extensions decides with a
// ProvisioningRequest.
const ProvisioningController = "kube-queue.dev/provisioning-request"

// Keys on ProvisioningRequests and their PodTemplates.
const (
	// UnitUIDLabel is the UID of the unit that the object belongs to.
	UnitUIDLabel = "kube-queue/queue-unit-uid"
	// CheckLabel is the name of the AdmissionCheck that the object belongs to.
	CheckLabel = "kube-queue/admission-check"
	// FailedRequestsAnnotation of a ProvisioningRequest is how many requests of the unit have failed in a
	// row before it.
	FailedRequestsAnnotation = "kube-queue/failed-requests"
	// RequestedForAnnotation of a ProvisioningRequest identifies the pod sets of the unit for which it was
	// created. If those of the unit differ, the request is outdated.
	RequestedForAnnotation = "kube-queue/requested-for"
)

// ExtensionLabelPrefix, with the name of an extension, is a label of the Lease of job-extensions: "on" or "off". A
// tenant cannot write the Lease, so kube-queue-controller believes it.
const (
	ExtensionLabelPrefix = "kinds.kube-queue/"
	ExtensionOn          = "on"
	ExtensionOff         = "off"
)

// Keys on the ControllerRevision that keeps the last valid ElasticQuotaTree.
const (
	// LastValidTreeLabel "true" marks the ControllerRevision.
	LastValidTreeLabel = "kube-queue/last-valid-tree"
	// TreeGenerationAnnotation is the generation of the tree when it was kept.
	TreeGenerationAnnotation = "kube-queue/tree-generation"
)

// Annotations of pods that use the nodes of a ProvisioningRequest. Autoscalers have read the first two since
// 2024, and the others longer. Each pod carries all of them.
const (
	ConsumeRequestAnnotation      = "autoscaling.x-k8s.io/consume-provisioning-request"
	RequestClassAnnotation        = "autoscaling.x-k8s.io/provisioning-class-name"
	OlderConsumeRequestAnnotation = "cluster-autoscaler.kubernetes.io/consume-provisioning-request"
	OlderRequestClassAnnotation   = "cluster-autoscaler.kubernetes.io/provisioning-class-name"
)

// ReclaimAttribute of a quota node, with the value ReclaimNever, keeps the jobs at and below the node from being
// evicted for the guarantee of other quotas.
const (
	ReclaimAttribute = "kube-queue/reclaim"
	ReclaimNever     = "never"
)

// MaxJobsResource in the max of a quota node limits the number of units that hold quota at or
// below the node.
const MaxJobsResource = "kube-queue/max-jobs"
