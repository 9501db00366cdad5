// Package trainjob is the adapter of trainer.kubeflow.org/v1alpha1 TrainJob, which
// Kubeflow Trainer v2 runs.
//
// A TrainJob refers to its runtime, another object, and overrides parts of it. The
// controller of Trainer combines them in a JobSet with the TrainJob's name. While the
// TrainJob is suspended, the JobSet exists, is suspended too, and contains the pod
// templates that will run. So the JobSet provides the requests, and shows whether a
// suspended TrainJob still has pods: the controller writes condition Suspended of the
// TrainJob itself as soon as it has seen spec.suspend.
//
// The JobSet and its Jobs are parts of the TrainJob and so are not queued separately.
//
// A TrainJob does not name the version from which its JobSet was created. If it is edited just
// before its release, it is charged by the older JobSet.
package trainjob

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/jobset"
)

// adapter uses the adapter of JobSet to read the JobSets of TrainJobs.
type adapter struct{ jobSets framework.Adapter }

// New returns the adapter.
func New() framework.Adapter { return adapter{jobset.New()} }

func (a adapter) Kind() framework.Kind {
	jobSet := a.jobSets.Kind()
	return framework.Kind{
		Name:             "trainjob",
		GroupVersionKind: schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"},
		Resource:         "trainjobs",
		SuspendPath:      []string{"spec", "suspend"},
		ManagedBy:        managedBy,
		Parts:            []schema.GroupKind{jobSet.GroupKind()},
		Operators:        []string{"system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager"},
		// The JobSet of a TrainJob has its name.
		PodLabel: framework.PodLabel{Key: "jobset.sigs.k8s.io/jobset-name"},
		Related:  framework.Related{GroupVersionKind: jobSet.GroupVersionKind, Resource: jobSet.Resource},
		Fence: framework.Fence{
			Frozen: [][]string{{"spec", "runtimeRef"}, {"spec", "initializer"}, {"spec", "trainer"},
				{"spec", "podTemplateOverrides"}, {"spec", "runtimePatches"}},
			Ended: framework.Ended{Conditions: []string{conditionComplete, conditionFailed}},
		},
		Places: []framework.Place{{
			Path: []string{"spec", "runtimePatches"}, Key: "manager", Manager: manager, Time: "time",
			Own: &framework.Place{
				Path: []string{"trainingRuntimeSpec", "template", "spec", "replicatedJobs"}, Key: "name",
				Below: []string{"template", "spec", "template", "metadata", "annotations"},
			},
		}},
		Doc: framework.Doc{
			Shows:  "STATE `Suspended`, which Trainer shows until the job has ended",
			Counts: "as for the JobSet",
			Ready:  "as for the JobSet",
			Frees:  "condition Complete or Failed",
			Stops:  "condition Suspended, and its JobSet is suspended and has no pods",
			Gang:   "`spec.runtimePatches` has no such field. The JobSet in a runtime has `schedulingGroup`, but many TrainJobs share a runtime",
		},
	}
}

func (adapter) New() framework.Object { return &TrainJob{} }

func (a adapter) NewRelated() framework.Object { return a.jobSets.New() }

// Templates returns none: a TrainJob contains only patches of them.
func (adapter) Templates(framework.Object) []*corev1.PodTemplateSpec { return nil }

func (a adapter) RelatedTemplates(jobSet framework.Object) []*corev1.PodTemplateSpec {
	return a.jobSets.Templates(jobSet)
}

func (a adapter) Pods(object framework.Object) (framework.Pods, error) {
	return a.PodsWith(object, nil)
}

func (a adapter) PodsWith(object, jobSet framework.Object) (framework.Pods, error) {
	job := framework.As[TrainJob](object)
	if jobSet == nil {
		ref := job.Spec.RuntimeRef
		return framework.Pods{}, fmt.Errorf("the requests of TrainJob %s are unknown, because it has no JobSet yet;"+
			" check that the controller of Kubeflow Trainer runs and that %s %q exists (kubectl describe trainjob %s)",
			job.Name, cmp.Or(ref.Kind, defaultRuntime), ref.Name, job.Name)
	}
	pods, err := a.jobSets.Pods(jobSet)
	if err != nil {
		return framework.Pods{}, fmt.Errorf("JobSet %s (created from runtime %q): %w", jobSet.GetName(), job.Spec.RuntimeRef.Name, err)
	}
	return pods, nil
}

func (adapter) SuspendPatch(_ framework.Object, suspend bool) map[string]any {
	return map[string]any{"spec": map[string]any{"suspend": suspend}}
}

func (a adapter) State(object framework.Object) framework.JobState { return a.StateWith(object, nil) }

func (a adapter) StateWith(object, jobSet framework.Object) framework.JobState {
	job := framework.As[TrainJob](object)
	conditions := job.Status.Conditions
	state := framework.JobState{
		Suspended: ptr.Deref(job.Spec.Suspend, false),
		ManagedBy: ptr.Deref(job.Spec.ManagedBy, ""),
		// False after a resume; the condition is absent in a job that was never suspended.
		Started: apimeta.IsStatusConditionFalse(conditions, conditionSuspended),
		End:     end(conditions),
	}
	if jobSet == nil {
		return state
	}
	child := a.jobSets.State(jobSet)
	state.Started = state.Started || child.Started
	state.Running, state.Ready = child.Running, child.Ready
	state.Stopped = apimeta.IsStatusConditionTrue(conditions, conditionSuspended) && child.Suspended && child.Stopped
	if child.End == nil && !child.Stopped {
		// Trainer reports an exceeded deadline before it deletes the JobSet, and does not
		// retry a failed deletion.
		state.End = nil
	}
	return state
}

// end returns the end of the TrainJob. The failure that its runtime is not supported is
// not final: Trainer removes it when the runtime changes.
func end(conditions []metav1.Condition) *framework.End {
	for _, name := range []string{conditionComplete, conditionFailed} {
		if c := apimeta.FindStatusCondition(conditions, name); c != nil && c.Status == metav1.ConditionTrue && c.Reason != reasonRuntimeNotSupported {
			return &framework.End{Succeeded: name == conditionComplete, Reason: c.Reason, Message: c.Message}
		}
	}
	return nil
}
