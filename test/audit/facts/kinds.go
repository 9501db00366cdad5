package facts

import (
	"encoding/json"
	"fmt"
)

// Row describes one kind of job.
type Row struct {
	Group, Version, Resource, Kind string // an empty version matches all versions

	// Suspend is the path of the suspend field, joined by dots.
	Suspend string
	// BySuspend: the suspend field is a mark, if also is nil or true. The annotation is a mark for
	// every kind.
	BySuspend bool
	also      func(object) bool
	// managedBy is the path of the field that gives the job to another controller, unless its value
	// is Operator.
	managedBy, Operator string
	// unholdable reports whether an object cannot be held.
	unholdable func(object) bool

	// end returns from the job's status whether and how it has ended.
	end func(object) Ending
	// running reports whether the job runs, by its status.
	running func(object) bool
	// state is what kubectl shows.
	state func(object) string
	// podLabel names the job of pods without a controller.
	podLabel string
	// HasClusters: the job has not ended while its RayCluster exists.
	HasClusters bool
	// ShowsQueuing: a condition on the job shows that it waits. It takes two more writes.
	ShowsQueuing bool
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
		Group: "batch", Version: "v1", Resource: "jobs", Kind: "Job",
		Suspend: "spec.suspend", BySuspend: true,
		managedBy: "spec.managedBy", Operator: "kubernetes.io/job-controller",
		end: byConditions("Complete", "Failed"), running: activePods, state: lastTrueCondition,
	},
	kubeflow("TFJob", "tfjobs"),
	kubeflow("PyTorchJob", "pytorchjobs"),
	kubeflow("XGBoostJob", "xgboostjobs"),
	kubeflow("PaddleJob", "paddlejobs"),
	unmanaged(kubeflow("JAXJob", "jaxjobs")),
	kubeflow("MPIJob", "mpijobs"),
	{
		Group: "kubeflow.org", Version: "v2beta1", Resource: "mpijobs", Kind: "MPIJob",
		Suspend:   "spec.runPolicy.suspend",
		managedBy: "spec.runPolicy.managedBy", Operator: "kubeflow.org/mpi-operator",
		end: whenComplete(byConditions("Succeeded", "Failed")), running: hasCondition("Running"), state: lastCondition,
		ShowsQueuing: true,
	},
	{
		Group: "sparkoperator.k8s.io", Version: anyVersion, Resource: "sparkapplications", Kind: "SparkApplication",
		Suspend:  "spec.suspend",
		end:      byState("status.applicationState.state", map[string]Ending{"COMPLETED": Succeeded, "FAILED": Failed}),
		running:  inState("status.applicationState.state", "RUNNING"),
		state:    stateAt("status.applicationState.state"),
		podLabel: "sparkoperator.k8s.io/app-name",
	},
	{
		Group: "ray.io", Version: anyVersion, Resource: "rayjobs", Kind: "RayJob",
		Suspend: "spec.suspend", BySuspend: true,
		managedBy: "spec.managedBy", Operator: "ray.io/kuberay-operator",
		unholdable:  rayJobUnholdable,
		end:         rayJobEnd,
		running:     inState("status.jobDeploymentStatus", "Running", "Waiting"),
		state:       stateAt("status.jobDeploymentStatus"),
		HasClusters: true,
	},
	{
		Group: "ray.io", Version: anyVersion, Resource: "rayclusters", Kind: "RayCluster",
		Suspend: "spec.suspend", BySuspend: true,
		managedBy: "spec.managedBy", Operator: "ray.io/kuberay-operator",
		end:     func(object) Ending { return Going },
		running: inState("status.state", "ready"), state: stateAt("status.state"),
	},
	{
		Group: "jobset.x-k8s.io", Version: anyVersion, Resource: "jobsets", Kind: "JobSet",
		Suspend: "spec.suspend", BySuspend: true,
		managedBy: "spec.managedBy", Operator: "jobset.sigs.k8s.io/jobset-controller",
		unholdable: withoutGroups,
		end:        byConditions("Completed", "Failed"), running: readyJobs("status.replicatedJobsStatus"), state: lastTrueCondition,
	},
	{
		Group: "trainer.kubeflow.org", Version: anyVersion, Resource: "trainjobs", Kind: "TrainJob",
		Suspend:   "spec.suspend",
		managedBy: "spec.managedBy", Operator: "trainer.kubeflow.org/trainjob-controller",
		end: byConditions("Complete", "Failed"), running: readyJobs("status.jobsStatus"), state: lastTrueCondition,
	},
	{
		Group: "argoproj.io", Version: anyVersion, Resource: "workflows", Kind: "Workflow",
		Suspend: "spec.suspend", BySuspend: true, also: queuePoint,
		end:     byState("status.phase", map[string]Ending{"Succeeded": Succeeded, "Failed": Failed, "Error": Failed}),
		running: inState("status.phase", "Running"), state: stateAt("status.phase"),
	},
}

// kubeflow returns the row of a kind of the training operator.
func kubeflow(kind, resource string) *Row {
	return &Row{
		Group: "kubeflow.org", Version: "v1", Resource: resource, Kind: kind,
		Suspend:   "spec.runPolicy.suspend",
		managedBy: "spec.runPolicy.managedBy", Operator: "kubeflow.org/training-operator",
		end: byConditions("Succeeded", "Failed"), running: hasCondition("Running"), state: lastCondition,
		ShowsQueuing: true,
	}
}

// unmanaged changes the row to that of a kind whose operator does not read managedBy.
func unmanaged(r *Row) *Row {
	r.managedBy, r.Operator = "", ""
	return r
}

// Rows returns the rows of all kinds.
func Rows() []*Row { return rows }

// RowOf returns the row of a resource, or nil.
func RowOf(group, version, resource string) *Row {
	return rowWhere(group, version, func(r *Row) bool { return r.Resource == resource })
}

// rowOfKind returns the row of the kind in an object reference, or nil.
func rowOfKind(group, version, kind string) *Row {
	return rowWhere(group, version, func(r *Row) bool { return r.Kind == kind })
}

func rowWhere(group, version string, is func(*Row) bool) *Row {
	for _, r := range rows {
		if r.Group == group && (r.Version == anyVersion || r.Version == version) && is(r) {
			return r
		}
	}
	return nil
}

// JobView is the state of a job, read from its status.
type JobView struct {
	// Running reports whether the job runs, by its status.
	Running bool
	// Outcome is Succeeded or Failed after the job has ended.
	Outcome string
	// State is what kubectl shows.
	State string
}

// Job reads a job of the kind.
func (r *Row) Job(content map[string]any) (JobView, error) {
	var o object
	data, err := json.Marshal(content) // with numbers as in JSON
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	if err != nil {
		return JobView{}, fmt.Errorf("a %s: %w", r.Kind, err)
	}
	return JobView{Running: r.running(o), Outcome: string(r.end(o)), State: r.state(o)}, nil
}
