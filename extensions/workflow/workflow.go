// Package workflow is the adapter of argoproj.io/v1alpha1 Workflow, which is
// queued as a whole.
//
// A Workflow is marked by the annotation, or by spec.suspend where it also has the
// queue point: a template named kube-queue-suspend with "suspend: {}". Without one
// a suspended Workflow waits for somebody else.
//
// Argo takes up a suspended Workflow all the same: its phase reads Running, and
// its clock runs. What it has begun is reported by its nodes alone. Suspending a
// Workflow ends no pod; it only starts no more.
//
// What its pods will ask for cannot be known in advance, so its owner says it: see
// size.go. Its CRD describes nothing, and Argo's own types come with a hundred
// modules, so the few fields read here have types of their own: see fields.go.
package workflow

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
)

// podSet is the name of the one group of pods, which stands for all.
const podSet = "workflow"

type adapter struct{}

// New returns the adapter.
func New() framework.Adapter { return adapter{} }

func (adapter) Kind() framework.Kind {
	return framework.Kind{
		Name:             "workflow",
		GroupVersionKind: schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"},
		Resource:         "workflows",
		SuspendPath:      []string{"spec", "suspend"},
		MarkedBySuspend:  true,
		Doc: framework.Doc{
			Mark:   "a template `kube-queue-suspend` with `suspend: {}`",
			Shows:  "STATUS `Running`, which is no more than Argo's way to say that it has seen it",
			Counts: "what `" + wellknown.MinResourcesAnnotation + "` says",
			Frees:  "phase Succeeded, Failed or Error",
			Stops:  "no node with a pod is unfinished",
		},
	}
}

func (adapter) New() framework.Object { return &Workflow{} }

func (adapter) State(object framework.Object) framework.JobState {
	workflow, isWorkflow := object.(*Workflow)
	if !isWorkflow {
		return framework.JobState{}
	}
	spec, status := &workflow.Spec, &workflow.Status
	suspended := ptr.Deref(spec.Suspend, false)
	return framework.JobState{
		Suspended: suspended,
		NoMark:    !spec.queuePoint(),
		Started:   status.begun(),
		Running:   !suspended && status.podsRun(),
		// Argo writes a phase once it has seen the Workflow, and the nodes with it.
		Stopped: suspended && status.Phase != "" && !status.nodesHidden() && status.Nodes.Unfinished == 0,
		Lingers: lingers(status),
		End:     end(status),
	}
}

// lingers: what suspending a Workflow does not stop.
func lingers(status *Status) string {
	switch {
	case status.nodesHidden():
		return "Argo starts no more pods of a suspended Workflow, but keeps its nodes where nobody can see whether those that run have ended; to have the quota free, delete it"
	case status.Nodes.Unfinished > 0:
		return "Argo starts no more pods of a suspended Workflow, but lets those that run go on to their end; to stop them now, delete it"
	}
	return ""
}

func end(status *Status) *framework.End {
	switch status.Phase {
	case phaseSucceeded, phaseFailed, phaseError:
		return &framework.End{Succeeded: status.Phase == phaseSucceeded, Reason: "Workflow" + status.Phase, Message: status.Message}
	}
	return nil
}

func (adapter) Pods(object framework.Object) (framework.Pods, error) {
	workflow, isWorkflow := object.(*Workflow)
	if !isWorkflow {
		return framework.Pods{}, nil
	}
	pods := framework.Pods{PriorityClassName: workflow.Spec.PodPriorityClassName}
	text, sized := workflow.Annotations[wellknown.MinResourcesAnnotation]
	if !sized {
		// No group of pods either: none is known that a quota could refuse.
		pods.Unsized = unsized
		return pods, nil
	}
	declared, err := parseSize(text)
	if err != nil {
		return framework.Pods{}, err
	}
	pods.Sets = []framework.PodSet{{Name: podSet, Count: 1, Declared: declared}}
	return pods, nil
}

// Templates: none, for pods are made of Argo's own templates, which are not kept.
func (adapter) Templates(framework.Object) []*corev1.PodTemplateSpec { return nil }

// SuspendPatch has Argo begin again with a Workflow that is released: while it was
// queued the time of activeDeadlineSeconds went by. Argo takes a Workflow without
// a phase for one that it has never seen, checks it again, for which a
// WorkflowTemplate that it refers to must still be there, and starts the clock. All
// else in the status stays, so it runs by the template as it was when Argo first
// saw it.
func (adapter) SuspendPatch(object framework.Object, suspend bool) map[string]any {
	patch := map[string]any{"spec": map[string]any{"suspend": suspend}}
	if workflow, isWorkflow := object.(*Workflow); isWorkflow && !suspend && workflow.onlyWaited() {
		patch["status"] = map[string]any{"phase": nil, "startedAt": nil}
	}
	return patch
}
