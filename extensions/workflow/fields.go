package workflow

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// queuePoint is the name of the template that marks a Workflow.
const queuePoint = "kube-queue-suspend"

// Phases of a Workflow that are used. A Workflow has no phase before Argo has seen it,
// and phase Pending while Argo itself holds it.
const (
	phaseRunning   = "Running"
	phaseSucceeded = "Succeeded"
	phaseFailed    = "Failed"
	phaseError     = "Error"
)

// Workflow has the fields of a Workflow that are used. A field has Argo's type if Argo
// cannot read any other, and type given if only its presence counts.
type Workflow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec,omitempty"`
	Status Status `json:"status,omitempty"`
}

// Spec of a Workflow.
type Spec struct {
	Suspend               *bool      `json:"suspend,omitempty"`
	Templates             []Template `json:"templates,omitempty"`
	PodPriorityClassName  string     `json:"podPriorityClassName,omitempty"`
	ActiveDeadlineSeconds given      `json:"activeDeadlineSeconds,omitempty"`
	WorkflowTemplateRef   given      `json:"workflowTemplateRef,omitempty"`
}

// Template is a step of some kind.
type Template struct {
	Name    string    `json:"name,omitempty"`
	Suspend *struct{} `json:"suspend,omitempty"`
}

// Status of a Workflow.
type Status struct {
	Phase   string `json:"phase,omitempty"`
	Message string `json:"message,omitempty"`
	// StartedAt is when Argo first processed the Workflow, suspended or not.
	StartedAt given `json:"startedAt,omitempty"`
	Nodes     Nodes `json:"nodes,omitempty"`
	// CompressedNodes and OffloadNodeStatusVersion replace Nodes.
	CompressedNodes          given `json:"compressedNodes,omitempty"`
	OffloadNodeStatusVersion given `json:"offloadNodeStatusVersion,omitempty"`
	// Synchronization lists the locks of Argo that the Workflow holds or waits for.
	Synchronization given `json:"synchronization,omitempty"`
	// Stored is the spec merged with a WorkflowTemplate.
	Stored struct {
		ActiveDeadlineSeconds given `json:"activeDeadlineSeconds,omitempty"`
	} `json:"storedWorkflowTemplateSpec,omitempty"`
}

func (w *Workflow) DeepCopyObject() runtime.Object {
	out := *w
	w.DeepCopyInto(&out.ObjectMeta)
	if w.Spec.Suspend != nil {
		out.Spec.Suspend = new(*w.Spec.Suspend)
	}
	out.Spec.Templates = slices.Clone(w.Spec.Templates)
	return &out
}

// onlyWaited reports whether Argo counts the time of a Workflow with a deadline although
// nothing has started. A Workflow that uses Argo's locks is excluded, because after a
// restart Argo reads the holders of locks from the status.
func (w *Workflow) onlyWaited() bool {
	status := &w.Status
	deadline := bool(w.Spec.ActiveDeadlineSeconds || status.Stored.ActiveDeadlineSeconds)
	return deadline && status.Phase == phaseRunning && bool(status.StartedAt) && !status.begun() && !bool(status.Synchronization)
}

func (s *Spec) queuePoint() bool {
	return slices.ContainsFunc(s.Templates, func(t Template) bool { return t.Name == queuePoint && t.Suspend != nil })
}

// begun reports whether nodes exist or may exist.
func (s *Status) begun() bool { return s.nodesHidden() || s.Nodes.Count > 0 }

// podsRun reports whether pods run. It uses the phase if the nodes are not visible.
func (s *Status) podsRun() bool {
	if s.nodesHidden() {
		return s.Phase == phaseRunning
	}
	return s.Nodes.Running > 0
}

// nodesHidden reports whether the state of the nodes is not visible in the status.
func (s *Status) nodesHidden() bool {
	return bool(s.CompressedNodes) || bool(s.OffloadNodeStatusVersion) || s.Nodes.Unreadable
}

// given is true if a field is present, with any value.
type given bool

// UnmarshalJSON accepts any value.
func (g *given) UnmarshalJSON(data []byte) error {
	*g = string(data) != "null" && string(data) != `""`
	return nil
}

// Nodes is a summary of status.nodes, which may be a megabyte of text.
type Nodes struct {
	// Count of all nodes.
	Count int
	// Unfinished are nodes that have a pod, or get one next; Running are nodes whose pod runs.
	Unfinished, Running int
	// Unreadable: the field has an unexpected value, so the nodes are unknown.
	Unreadable bool
}

// UnmarshalJSON counts the nodes. It accepts any value: if unreadable nodes were ignored,
// the Workflow would appear to have no pods.
func (n *Nodes) UnmarshalJSON(data []byte) error {
	var nodes map[string]struct {
		Type  string `json:"type"`
		Phase string `json:"phase"`
		// Lock is what the node waits for.
		Lock struct {
			Waiting string `json:"waiting"`
		} `json:"synchronizationStatus"`
	}
	*n = Nodes{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &nodes); err != nil {
		n.Unreadable = true
		return nil
	}
	n.Count = len(nodes)
	for _, node := range nodes {
		switch node.Type {
		// Nodes of the last two types share the pod of an agent.
		case "Pod", "HTTP", "Plugin":
		default:
			continue
		}
		switch node.Phase {
		case "Succeeded", "Failed", "Error", "Skipped", "Omitted":
		case "Running":
			n.Running++
			n.Unfinished++
		default:
			if node.Lock.Waiting == "" { // otherwise it has no pod, and gets none while the Workflow is suspended
				n.Unfinished++
			}
		}
	}
	return nil
}
