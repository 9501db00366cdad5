// Package sparkapplication is the adapter of SparkApplication. It requires operator 2.4
// or later: older versions have no suspend field.
//
// An application is a driver and its executors; package spark computes their requests.
// The state in its status describes its complete lifecycle.
//
// The release changes only suspend, because the operator starts an application again after any other
// change of its spec. It waits until the state is SUSPENDED, at most 10 s: an application that is
// released while the operator begins to suspend it can be lost.
package sparkapplication

import (
	"github.com/kubeflow/spark-operator/v2/api/v1beta2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/sparkapplication/spark"
)

type adapter struct{}

// New returns the adapter.
func New() framework.Adapter { return adapter{} }

func (adapter) Kind() framework.Kind {
	return framework.Kind{
		Name:             "sparkapp",
		GroupVersionKind: v1beta2.SchemeGroupVersion.WithKind("SparkApplication"),
		Resource:         "sparkapplications",
		SuspendPath:      []string{"spec", "suspend"},
		Operators:        []string{"system:serviceaccount:spark-operator:spark-operator-controller"},
		Fence: framework.Fence{
			// When any field except suspend and timeToLiveSeconds changes, the operator runs the application again,
			// even if it has ended.
			Frozen: [][]string{{"spec", "driver"}, {"spec", "executor"}, {"spec", "dynamicAllocation"}, {"spec", "sparkConf"},
				{"spec", "sparkConfigMap"}, {"spec", "memoryOverheadFactor"}, {"spec", "type"}, {"spec", "mode"}, {"spec", "mainApplicationFile"},
				{"spec", "nodeSelector"}, {"spec", "mainClass"}, {"spec", "arguments"}, {"spec", "image"}, {"spec", "imagePullPolicy"},
				{"spec", "imagePullSecrets"}, {"spec", "sparkVersion"}, {"spec", "pythonVersion"}, {"spec", "proxyUser"}, {"spec", "hadoopConf"},
				{"spec", "hadoopConfigMap"}, {"spec", "volumes"}, {"spec", "deps"}, {"spec", "restartPolicy"}, {"spec", "failureRetries"},
				{"spec", "retryInterval"}, {"spec", "monitoring"}, {"spec", "batchScheduler"}, {"spec", "batchSchedulerOptions"},
				{"spec", "sparkUIOptions"}, {"spec", "driverIngressOptions"}},
			Ended: framework.Ended{Path: []string{"status", "applicationState", "state"},
				Values: []string{string(v1beta2.ApplicationStateCompleted), string(v1beta2.ApplicationStateFailed)}},
		},
		NoPlaces: "the Spark operator discards and repeats the start of a SparkApplication if its release changes any other field than spec.suspend",
		PodLabel: framework.PodLabel{Key: "sparkoperator.k8s.io/app-name"},
		Doc: framework.Doc{
			Needs:  "operator 2.4 or later",
			Shows:  "STATUS `SUSPENDED`",
			Counts: "driver and executors, with the memory overhead that Spark adds",
			Ready: "state RUNNING, and all executors run or have completed (`status.executorState`; at most 1000, because the operator lists no more); " +
				"with dynamic allocation, its `minExecutors`",
			Frees: "state COMPLETED or FAILED",
			Stops: "state SUSPENDED",
			Gang:  "pod templates can have any field, but the Spark operator drops `schedulingGroup`, which its version of the API does not have",
		},
	}
}

func (adapter) New() framework.Object { return &v1beta2.SparkApplication{} }

func (adapter) State(object framework.Object) framework.JobState {
	app := framework.As[v1beta2.SparkApplication](object)
	state, suspended, ended := app.Status.AppState.State, ptr.Deref(app.Spec.Suspend, false), end(app.Status.AppState)
	return framework.JobState{
		Suspended: suspended,
		Started:   started(&app.Status),
		// Before this state the driver waits for a node; after it the driver has ended.
		Running: state == v1beta2.ApplicationStateRunning,
		Ready:   state == v1beta2.ApplicationStateRunning && executorsReady(app),
		// In this state the operator has deleted the driver, and executors end with it.
		Stopped: state == v1beta2.ApplicationStateSuspended,
		// If an application is unsuspended while the operator is about to write SUSPENDING,
		// it may be submitted, its driver deleted again, and never resumed.
		Suspending: suspended && state != v1beta2.ApplicationStateSuspended && ended == nil,
		End:        ended,
	}
}

// started reports whether the application has been submitted. An application that was created suspended passes
// through these states first; one that was suspended later retains its attempts.
func started(status *v1beta2.SparkApplicationStatus) bool {
	switch status.AppState.State {
	case v1beta2.ApplicationStateNew, v1beta2.ApplicationStateSuspending,
		v1beta2.ApplicationStateSuspended, v1beta2.ApplicationStateResuming:
		return status.SubmissionAttempts > 0
	}
	return true
}

// trackedExecutors is how many executors the operator lists in the status by default
// (--max-tracked-executor-per-app).
const trackedExecutors = 1000

// executorsReady reports whether enough executors run or have completed. The operator lists each
// executor with the phase of its pod, since the last submission.
func executorsReady(app *v1beta2.SparkApplication) bool {
	least, err := spark.LeastExecutors(&app.Spec)
	if err != nil {
		return false
	}
	up := int32(0)
	for _, state := range app.Status.ExecutorState {
		if state == v1beta2.ExecutorStateRunning || state == v1beta2.ExecutorStateCompleted {
			up++
		}
	}
	return up >= min(least, trackedExecutors)
}

// end returns the end of the application. Depending on the restart policy, another run may follow a run that has
// failed or succeeded (FAILING, SUBMISSION_FAILED, SUCCEEDING). Only in the two states below has the operator decided
// that none follows.
func end(state v1beta2.ApplicationState) *framework.End {
	switch state.State {
	case v1beta2.ApplicationStateCompleted:
		return &framework.End{Succeeded: true, Reason: string(state.State), Message: state.ErrorMessage}
	case v1beta2.ApplicationStateFailed:
		return &framework.End{Reason: string(state.State), Message: state.ErrorMessage}
	}
	return nil
}

func (adapter) Pods(object framework.Object) (framework.Pods, error) {
	app := framework.As[v1beta2.SparkApplication](object)
	sets, err := spark.Pods(&app.Spec)
	pods := framework.Pods{Sets: sets}
	if options := app.Spec.BatchSchedulerOptions; options != nil {
		pods.PriorityClassName, pods.PriorityClassField = ptr.Deref(options.PriorityClassName, ""), "spec.batchSchedulerOptions.priorityClassName"
	}
	return pods, err
}

// Templates returns the templates of the application's owner, if any.
func (adapter) Templates(object framework.Object) []*corev1.PodTemplateSpec {
	app := framework.As[v1beta2.SparkApplication](object)
	var templates []*corev1.PodTemplateSpec
	for _, template := range []*corev1.PodTemplateSpec{app.Spec.Driver.Template, app.Spec.Executor.Template} {
		if template != nil {
			templates = append(templates, template)
		}
	}
	return templates
}

// SuspendPatch changes no other field: the operator runs an application again when any
// other field of its spec changes.
func (adapter) SuspendPatch(_ framework.Object, suspend bool) map[string]any {
	return map[string]any{"spec": map[string]any{"suspend": suspend}}
}
