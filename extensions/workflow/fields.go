package workflow

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"
)

// queuePoint is the name of the template that says that the Workflow is queued.
const queuePoint = "kube-queue-suspend"

// Phases of a Workflow that are read here. It has none before Argo has seen it,
// and Pending while Argo itself holds it back.
const (
	phaseRunning   = "Running"
	phaseSucceeded = "Succeeded"
	phaseFailed    = "Failed"
	phaseError     = "Error"
)

// Workflow is what is read of a Workflow. A field has the type that Argo gives it
// where Argo itself could not read another, and any type where only that it is
// there counts.
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
	// StartedAt is when Argo first took up the Workflow, suspended or not.
	StartedAt given `json:"startedAt,omitempty"`
	Nodes     Nodes `json:"nodes,omitempty"`
	// CompressedNodes and OffloadNodeStatusVersion stand in place of Nodes.
	CompressedNodes          given `json:"compressedNodes,omitempty"`
	OffloadNodeStatusVersion given `json:"offloadNodeStatusVersion,omitempty"`
	// Synchronization reports which locks of Argo the Workflow has or waits for.
	Synchronization given `json:"synchronization,omitempty"`
	// Stored is the spec with what a WorkflowTemplate adds to it.
	Stored struct {
		ActiveDeadlineSeconds given `json:"activeDeadlineSeconds,omitempty"`
	} `json:"storedWorkflowTemplateSpec,omitempty"`
}

// DeepCopyObject copies the Workflow.
func (w *Workflow) DeepCopyObject() runtime.Object {
	out := *w
	w.DeepCopyInto(&out.ObjectMeta)
	if w.Spec.Suspend != nil {
		out.Spec.Suspend = ptr.To(*w.Spec.Suspend)
	}
	out.Spec.Templates = slices.Clone(w.Spec.Templates)
	return &out
}

// onlyWaited: Argo counts the time of a Workflow that has a deadline, and has
// begun nothing. One that has taken part in Argo's locks is left as it is, for its
// status is where Argo looks after a restart for who holds them.
func (w *Workflow) onlyWaited() bool {
	status := &w.Status
	deadline := bool(w.Spec.ActiveDeadlineSeconds || status.Stored.ActiveDeadlineSeconds)
	return deadline && status.Phase == phaseRunning && bool(status.StartedAt) && !status.begun() && !bool(status.Synchronization)
}

func (s *Spec) queuePoint() bool {
	return slices.ContainsFunc(s.Templates, func(t Template) bool { return t.Name == queuePoint && t.Suspend != nil })
}

// begun: there are nodes, or there may be.
func (s *Status) begun() bool { return s.nodesHidden() || s.Nodes.Count > 0 }

// podsRun goes by the phase where the nodes cannot be seen.
func (s *Status) podsRun() bool {
	if s.nodesHidden() {
		return s.Phase == phaseRunning
	}
	return s.Nodes.Running > 0
}

// nodesHidden: what the nodes do cannot be seen here.
func (s *Status) nodesHidden() bool {
	return bool(s.CompressedNodes) || bool(s.OffloadNodeStatusVersion) || s.Nodes.Unreadable
}

// given reports whether a field is there, whatever it is.
type given bool

// UnmarshalJSON takes anything.
func (g *given) UnmarshalJSON(data []byte) error {
	*g = string(data) != "null" && string(data) != `""`
	return nil
}

// Nodes is what is kept of status.nodes, which may be a megabyte of text.
type Nodes struct {
	// Count of all nodes.
	Count int
	// Unfinished are those that have a pod, or soon will; Running those whose pod
	// runs.
	Unfinished, Running int
	// Unreadable: there is something else there, so nothing is known.
	Unreadable bool
}

// UnmarshalJSON counts. It takes anything: were nodes that cannot be read left
// out, the Workflow would look as if it had no pods.
func (n *Nodes) UnmarshalJSON(data []byte) error {
	var nodes map[string]struct {
		Type  string `json:"type"`
		Phase string `json:"phase"`
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
			n.Unfinished++
		}
	}
	return nil
}
