package audit

import (
	"encoding/json"
	"fmt"
)

// Kind describes one kind of job.
type Kind struct {
	Group, Version, Resource, Kind string // an empty version matches all versions

	// Suspend is the path of the suspend field, joined by dots.
	Suspend string
	// BySuspend: the suspend field is a mark if also is nil or returns true. The annotation is a mark for every kind.
	BySuspend bool
	also      func(fields) bool
	// managedBy is the path of the field that hands the job to another controller, unless its value is Operator.
	managedBy, Operator string
	// unholdable reports whether an object cannot be held.
	unholdable func(fields) bool

	// end returns whether and how the job has ended, according to its status.
	end func(fields) Ending
	// running reports whether the job runs, according to its status.
	running func(fields) bool
	// state is what kubectl shows.
	state func(fields) string
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

var allKinds = []*Kind{
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
		end:     func(fields) Ending { return Going },
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
func kubeflow(kind, resource string) *Kind {
	return &Kind{
		Group: "kubeflow.org", Version: "v1", Resource: resource, Kind: kind,
		Suspend:   "spec.runPolicy.suspend",
		managedBy: "spec.runPolicy.managedBy", Operator: "kubeflow.org/training-operator",
		end: byConditions("Succeeded", "Failed"), running: hasCondition("Running"), state: lastCondition,
		ShowsQueuing: true,
	}
}

// unmanaged makes the row that of a kind whose operator does not read managedBy.
func unmanaged(k *Kind) *Kind {
	k.managedBy, k.Operator = "", ""
	return k
}

// KindView is how the checker reads a kind of job.
type KindView = *Kind

// ViewOf returns how the checker reads a version of a kind of job.
func ViewOf(group, version, resource string) (KindView, error) {
	k := kindOf(group, version, resource)
	if k == nil {
		return nil, fmt.Errorf("test/audit has no row for %s of %s/%s: add one to kinds.go", resource, group, version)
	}
	return k, nil
}

// kindOf returns the kind of a resource, or nil.
func kindOf(group, version, resource string) *Kind {
	return kindWhere(group, version, func(k *Kind) bool { return k.Resource == resource })
}

func kindWhere(group, version string, is func(*Kind) bool) *Kind {
	for _, k := range allKinds {
		if k.Group == group && (k.Version == anyVersion || k.Version == version) && is(k) {
			return k
		}
	}
	return nil
}

// JobView is the state of a job, read from its status.
type JobView struct {
	// Running reports whether the job runs, according to its status.
	Running bool
	// Outcome is Succeeded or Failed after the job has ended.
	Outcome string
	// State is what kubectl shows.
	State string
}

// Job reads a job of the kind.
func (k *Kind) Job(content map[string]any) (JobView, error) {
	var o fields
	data, err := json.Marshal(content) // with numbers as in JSON
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	if err != nil {
		return JobView{}, fmt.Errorf("a %s: %w", k.Kind, err)
	}
	return JobView{Running: k.running(o), Outcome: string(k.end(o)), State: k.state(o)}, nil
}
