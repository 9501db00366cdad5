package facts

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Keys and names of the public API that is checked.
const (
	annotationSuspend = "scheduling.x-k8s.io/suspend"
	labelQuotaName    = "kube-queue/quota-name"
	labelManaged      = "kube-queue/managed"
	labelKueue        = "kueue.x-k8s.io/queue-name"

	queueGroup = "scheduling.x-k8s.io"
	treeGroup  = "scheduling.sigs.k8s.io"
	leaseGroup = "coordination.k8s.io"

	// programNamespace is the namespace of the programs' leases.
	programNamespace = "kube-queue"
)

// parser reads the facts of an object that a write returned. It returns nil for an object of a kind
// other than the resource's own, such as a Scale.
type parser func(kind string, m *meta, raw json.RawMessage) (any, error)

func parserOf(group, version, resource string) parser {
	switch {
	case group == "" && resource == "pods":
		return parsePod
	case group == "" && resource == "resourcequotas":
		return parseResourceQuota
	case group == "" && resource == "namespaces":
		return parseNamespace
	case resource == "events" && (group == "" || group == "events.k8s.io"):
		return parseEvent
	case group == leaseGroup && resource == "leases":
		return parseLease
	case group == queueGroup && resource == "queueunits":
		return parseUnit
	case group == treeGroup && resource == "elasticquotatrees":
		return parseTree
	}
	if r := RowOf(group, version, resource); r != nil {
		return r.parse
	}
	return nil
}

// Job describes a job after a write.
type Job struct {
	Row        *Row
	Suspended  bool
	Annotation string // value of the suspend annotation
	Marked     bool   // opted in
	Foreign    bool   // managed by another queue or controller
	Unholdable bool
	Deleting   bool
	Owner      Owner
	QuotaName  string
	End        Ending
	Running    bool
	State      string
	Steered    string // values of the keys in steering
}

// steering lists the keys with which users change a job's order in its queue.
var steering = []string{"scheduling.x-k8s.io/priority", "scheduling.x-k8s.io/priority-class", "scheduling.x-k8s.io/active"}

func (r *Row) parse(kind string, m *meta, raw json.RawMessage) (any, error) {
	if kind != r.Kind {
		return nil, nil
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	f := &Job{
		Row: r, Suspended: at[bool](o, r.Suspend), Annotation: m.Annotations[annotationSuspend],
		Foreign: m.Labels[labelKueue] != "", Deleting: m.DeletionTimestamp != "",
		Owner: m.controller(), QuotaName: m.Labels[labelQuotaName],
		End: r.end(o), Running: r.running(o), State: word(r.state(o)),
		Unholdable: r.unholdable != nil && r.unholdable(o),
	}
	f.Marked = f.Annotation == "true" || r.BySuspend && f.Suspended && (r.also == nil || r.also(o))
	if r.managedBy != "" {
		by := at[string](o, r.managedBy)
		f.Foreign = f.Foreign || by != "" && by != r.Operator
	}
	for _, key := range steering {
		f.Steered += m.Annotations[key] + "," + m.Labels[key] + ","
	}
	f.Steered = word(f.Steered)
	return f, nil
}

// withParts are the kinds whose operators create other jobs as parts.
var withParts = []string{"JobSet", "TrainJob", "RayJob", "RayCluster", "MPIJob"}

// Queued reports whether the object may be queued. Parts of another job are not; objects of any other controller are.
func (f *Job) Queued() bool {
	return !f.Foreign && (f.Owner.UID == "" || !slices.Contains(withParts, f.Owner.Kind))
}

// Unmarked reports whether the object has no mark, or belongs to another queue.
func (f *Job) Unmarked() bool {
	return !f.Marked || f.Annotation != "" && f.Annotation != "true"
}

// Event identifies the object of an event.
type Event struct{ UID, Namespace, Name, Reason, Type string }

func parseEvent(_ string, _ *meta, raw json.RawMessage) (any, error) {
	type reference struct{ Namespace, Name, UID string }
	var e struct {
		InvolvedObject, Regarding reference
		Reason, Type              string
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, err
	}
	of := e.InvolvedObject
	if e.Regarding.Name != "" {
		of = e.Regarding
	}
	return &Event{of.UID, word(of.Namespace), of.Name, word(e.Reason), word(e.Type)}, nil
}

// Namespace reports whether jobs of a namespace are held without a mark.
type Namespace struct{ Managed bool }

func parseNamespace(_ string, m *meta, _ json.RawMessage) (any, error) {
	return &Namespace{strings.EqualFold(m.Labels[labelManaged], "true")}, nil
}

// Lease is the holder of a lease, and its duration.
type Lease struct {
	Holder string
	Lasts  time.Duration
}

func parseLease(_ string, m *meta, raw json.RawMessage) (any, error) {
	if m.Namespace != programNamespace {
		return nil, nil
	}
	var o struct {
		Spec struct {
			HolderIdentity       string
			LeaseDurationSeconds int
		}
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	return &Lease{o.Spec.HolderIdentity, time.Duration(o.Spec.LeaseDurationSeconds) * time.Second}, nil
}
