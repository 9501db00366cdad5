package facts

// Row describes one kind of job.
type Row struct {
	group, version, resource, kind string // an empty version matches all versions

	// suspend is the path of the suspend field.
	suspend string
	// byField: the suspend field is a mark, if also is nil or true. The annotation is a mark for
	// every kind.
	byField bool
	also    func(*object) bool
	// managedBy is the path of the field that gives the job to another controller, unless its value
	// is operator.
	managedBy, operator string
	// unholdable reports whether an object cannot be held.
	unholdable func(*object) bool

	// end returns from the job's status whether and how it has ended.
	end func(*object) Ending
	// running reports whether the job runs, by its status.
	running func(*object) bool
	// state is what kubectl shows.
	state func(*object) string
	// pods returns how many pods the job has at once, if its spec alone determines it.
	pods func(*object) int
	// podLabel names the job of pods without a controller.
	podLabel string
	// clusters: the job has not ended while its RayCluster exists.
	clusters bool
	// queuing: a condition on the job shows that it waits. It takes two more writes.
	queuing bool
}

type Ending string

const (
	Going     Ending = ""
	Succeeded Ending = "Succeeded"
	Failed    Ending = "Failed"
)

const anyVersion = ""

var rows = []*Row{
	{
		group: "batch", version: "v1", resource: "jobs", kind: "Job",
		suspend: "spec.suspend", byField: true,
		managedBy: "spec.managedBy", operator: "kubernetes.io/job-controller",
		end: byConditions("Complete", "Failed"), running: activePods, pods: jobPods, state: lastTrueCondition,
	},
	kubeflow("TFJob", "tfjobs", "spec.tfReplicaSpecs", 1, nil),
	kubeflow("PyTorchJob", "pytorchjobs", "spec.pytorchReplicaSpecs", 1, nil),
	kubeflow("XGBoostJob", "xgboostjobs", "spec.xgbReplicaSpecs", 1, nil),
	kubeflow("PaddleJob", "paddlejobs", "spec.paddleReplicaSpecs", 1, nil),
	unmanaged(kubeflow("JAXJob", "jaxjobs", "spec.jaxReplicaSpecs", 1, nil)),
	kubeflow("MPIJob", "mpijobs", "spec.mpiReplicaSpecs", 0, map[string]int{"launcher": 1}),
	{
		group: "kubeflow.org", version: "v2beta1", resource: "mpijobs", kind: "MPIJob",
		suspend:   "spec.runPolicy.suspend",
		managedBy: "spec.runPolicy.managedBy", operator: "kubeflow.org/mpi-operator",
		end: whenComplete(byConditions("Succeeded", "Failed")), running: hasCondition("Running"), state: lastCondition,
		queuing: true,
	},
	{
		group: "sparkoperator.k8s.io", version: anyVersion, resource: "sparkapplications", kind: "SparkApplication",
		suspend:  "spec.suspend",
		end:      byState("status.applicationState.state", map[string]Ending{"COMPLETED": Succeeded, "FAILED": Failed}),
		running:  inState("status.applicationState.state", "RUNNING"),
		state:    stateAt("status.applicationState.state"),
		podLabel: "sparkoperator.k8s.io/app-name",
	},
	{
		group: "ray.io", version: anyVersion, resource: "rayjobs", kind: "RayJob",
		suspend: "spec.suspend", byField: true,
		managedBy: "spec.managedBy", operator: "ray.io/kuberay-operator",
		unholdable: rayJobUnholdable,
		end:        rayJobEnd,
		running:    inState("status.jobDeploymentStatus", "Running", "Waiting"),
		state:      stateAt("status.jobDeploymentStatus"),
		clusters:   true,
	},
	{
		group: "ray.io", version: anyVersion, resource: "rayclusters", kind: "RayCluster",
		suspend: "spec.suspend", byField: true,
		managedBy: "spec.managedBy", operator: "ray.io/kuberay-operator",
		end:     func(*object) Ending { return Going },
		running: inState("status.state", "ready"), state: stateAt("status.state"),
	},
	{
		group: "jobset.x-k8s.io", version: anyVersion, resource: "jobsets", kind: "JobSet",
		suspend: "spec.suspend", byField: true,
		managedBy: "spec.managedBy", operator: "jobset.sigs.k8s.io/jobset-controller",
		unholdable: withoutGroups,
		end:        byConditions("Completed", "Failed"), running: readyJobs("status.replicatedJobsStatus"), state: lastTrueCondition,
	},
	{
		group: "trainer.kubeflow.org", version: anyVersion, resource: "trainjobs", kind: "TrainJob",
		suspend:   "spec.suspend",
		managedBy: "spec.managedBy", operator: "trainer.kubeflow.org/trainjob-controller",
		end: byConditions("Complete", "Failed"), running: readyJobs("status.jobsStatus"), state: lastTrueCondition,
	},
	{
		group: "argoproj.io", version: anyVersion, resource: "workflows", kind: "Workflow",
		suspend: "spec.suspend", byField: true, also: queuePoint,
		end:     byState("status.phase", map[string]Ending{"Succeeded": Succeeded, "Failed": Failed, "Error": Failed}),
		running: inState("status.phase", "Running"), state: stateAt("status.phase"),
	},
}

// kubeflow returns the row of a kind of the training operator. replicas is the path of the replica
// specs. A role without replicas has the count in except, or else unset.
func kubeflow(kind, resource, replicas string, unset int, except map[string]int) *Row {
	return &Row{
		group: "kubeflow.org", version: "v1", resource: resource, kind: kind,
		suspend:   "spec.runPolicy.suspend",
		managedBy: "spec.runPolicy.managedBy", operator: "kubeflow.org/training-operator",
		end: byConditions("Succeeded", "Failed"), running: hasCondition("Running"), state: lastCondition,
		pods:    replicaPods(replicas, unset, except),
		queuing: true,
	}
}

// unmanaged changes the row to that of a kind whose operator does not read managedBy.
func unmanaged(r *Row) *Row {
	r.managedBy, r.operator = "", ""
	return r
}

// RowOf returns the row of a resource, or nil.
func RowOf(group, version, resource string) *Row {
	for _, r := range rows {
		if r.group == group && r.resource == resource && (r.version == anyVersion || r.version == version) {
			return r
		}
	}
	return nil
}

// rowOfKind returns the row of the kind in an object reference, or nil.
func rowOfKind(group, version, kind string) *Row {
	for _, r := range rows {
		if r.group == group && r.kind == kind && (r.version == anyVersion || r.version == version) {
			return r
		}
	}
	return nil
}
