// Package workflow is the adapter of argoproj.io/v1alpha1 Workflow, which is
// queued as a whole.
//
// A Workflow is marked by the annotation, or by spec.suspend together with the queue
// point: a template named kube-queue-suspend with "suspend: {}". Without the queue point,
// a suspended Workflow waits for something else.
//
// Argo processes a suspended Workflow too: its phase is Running, and its deadline counts.
// Only the nodes show what has started. Suspending a Workflow stops no pod; it only
// prevents new ones.
//
// The requests of its pods cannot be known in advance, so the owner declares them: see
// size.go. The CRD has no schema, and Argo's own types depend on a hundred modules, so
// the few used fields have types of their own: see fields.go.
package workflow

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
)

// podSet is the name of the only pod set, which represents all pods.
const podSet = "workflow"

// completed is the label by which Argo knows that nothing of a Workflow is left to do.
const completed = "workflows.argoproj.io/completed"

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
		Operators:        []string{"system:serviceaccount:argo:argo"},
		// Whenever Argo writes a status, it also writes the spec in its own spelling, such as 2 for 2000m.
		Fence: framework.Fence{
			Declared: true,
			Ended:    framework.Ended{Path: []string{"status", "phase"}, Values: []string{phaseSucceeded, phaseFailed, phaseError}, Label: completed},
		},
		Places: []framework.Place{{
			PodSet: podSet, Path: []string{"spec", "podMetadata", "annotations"}, Unless: []string{"spec", "workflowTemplateRef"},
			Why: "Argo reads the spec of a Workflow with spec.workflowTemplateRef only once, before its release",
		}},
		PodLabel: framework.PodLabel{Key: "workflows.argoproj.io/workflow"},
		Doc: framework.Doc{
			Mark:   "a template `kube-queue-suspend` with `suspend: {}`",
			Shows:  "STATUS `Running`, which means only that Argo has seen the Workflow",
			Counts: "the amounts in annotation `" + wellknown.MinResourcesAnnotation + "`",
			Ready:  "a pod of it runs: its pods come one after another",
			Frees:  "phase Succeeded, Failed or Error, with Argo's label `" + completed + ": \"true\"`",
			Stops:  "no node with a pod is unfinished",
			Gang:   "`spec.podSpecPatch` can contain any field, but Argo drops `schedulingGroup`, which its version of the API does not have. The pods of a Workflow run one after another",
		},
	}
}

func (adapter) New() framework.Object { return &Workflow{} }

func (adapter) State(object framework.Object) framework.JobState {
	workflow := framework.As[Workflow](object)
	spec, status := &workflow.Spec, &workflow.Status
	suspended := ptr.Deref(spec.Suspend, false)
	running := !suspended && status.podsRun()
	return framework.JobState{
		Suspended: suspended,
		NoMark:    !spec.queuePoint(),
		Started:   status.begun(),
		Running:   running,
		// The pods of a Workflow come one after another, and their number is not known.
		Ready: running,
		// Argo writes the phase together with the nodes.
		Stopped:     suspended && status.Phase != "" && !status.nodesHidden() && status.Nodes.Unfinished == 0,
		Lingers:     lingers(status),
		Unstoppable: "Argo starts no new pods of a suspended Workflow, but its running pods continue until they end",
		End:         end(workflow),
	}
}

// lingers returns why suspending the Workflow does not stop it.
func lingers(status *Status) string {
	switch {
	case status.nodesHidden():
		return "Argo starts no new pods of a suspended Workflow, but its stored node status does not show whether running pods have ended; delete the Workflow to free the quota"
	case status.Nodes.Unfinished > 0:
		return "Argo starts no new pods of a suspended Workflow, but running pods continue until they end; delete the Workflow to stop them now"
	}
	return ""
}

// end reads the label too: Argo writes it together with the phase, and goes on without it. The owner can write both,
// because there is no subresource status.
func end(workflow *Workflow) *framework.End {
	status := &workflow.Status
	if workflow.Labels[completed] != "true" {
		return nil
	}
	switch status.Phase {
	case phaseSucceeded, phaseFailed, phaseError:
		return &framework.End{Succeeded: status.Phase == phaseSucceeded, Reason: "Workflow" + status.Phase, Message: status.Message}
	}
	return nil
}

func (adapter) Pods(object framework.Object) (framework.Pods, error) {
	workflow := framework.As[Workflow](object)
	pods := framework.Pods{PriorityClassName: workflow.Spec.PodPriorityClassName, PriorityClassField: "spec.podPriorityClassName"}
	text, sized := workflow.Annotations[wellknown.MinResourcesAnnotation]
	if !sized {
		// There is no pod set either, because no pod is known that a quota could reject.
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

// Templates returns none: Argo creates pods from its own templates, which are not cached.
func (adapter) Templates(framework.Object) []*corev1.PodTemplateSpec { return nil }

// SuspendPatch restarts the clock of a released Workflow, because activeDeadlineSeconds counted while it was queued.
// Argo treats a Workflow without a phase as new: it restarts the clock, and validates the Workflow again, so a
// referenced WorkflowTemplate must still exist. The rest of the status stays, so the Workflow runs with the template
// that Argo stored first.
func (adapter) SuspendPatch(object framework.Object, suspend bool) map[string]any {
	patch := map[string]any{"spec": map[string]any{"suspend": suspend}}
	if workflow := framework.As[Workflow](object); !suspend && workflow.onlyWaited() {
		patch["status"] = map[string]any{"phase": nil, "startedAt": nil}
	}
	return patch
}
