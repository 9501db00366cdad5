package model

import (
	"encoding/json"
	"slices"
	"strings"
)

// Keys and names of the public API that is checked.
const (
	overQuota         = "OverQuota"
	annotationSuspend = "scheduling.x-k8s.io/suspend"
	labelQuotaName    = "kube-queue/quota-name"
	labelManaged      = "kube-queue/managed"
	labelKueue        = "kueue.x-k8s.io/queue-name"

	queueGroup = "scheduling.x-k8s.io"
	treeGroup  = "scheduling.sigs.k8s.io"
)

// parser reads the facts of an object that a write returned. It returns nil for an object of a kind
// other than the resource's own, such as a Scale.
type parser func(d *decoder, kind string, m *meta, raw json.RawMessage) (any, error)

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
	case group == queueGroup && resource == "queues":
		return parseQueue
	case group == treeGroup && resource == "elasticquotatrees":
		return parseTreeObject
	}
	if r := rowOf(group, version, resource); r != nil {
		return r.parse
	}
	return nil
}

// jobFacts describes a job after a write.
type jobFacts struct {
	row        *row
	Suspended  bool
	Annotation string // value of the suspend annotation
	Marked     bool   // opted in
	Foreign    bool   // managed by another queue or controller
	Unholdable bool
	Deleting   bool
	owner      owner
	quotaName  string
	End        ending
	running    bool
	State      string
	Pods       int    // -1 if the spec does not determine it
	steered    string // values of the keys in steering
}

// steering lists the keys with which users change a job's order in its queue.
var steering = []string{"scheduling.x-k8s.io/priority", "scheduling.x-k8s.io/priority-class", "scheduling.x-k8s.io/active"}

func (r *row) parse(d *decoder, kind string, m *meta, raw json.RawMessage) (any, error) {
	if kind != r.kind {
		return nil, nil
	}
	o, err := newObject(raw)
	if err != nil {
		return nil, err
	}
	f := &jobFacts{
		row: r, Suspended: o.truth(r.suspend), Annotation: m.Annotations[annotationSuspend],
		Foreign: m.Labels[labelKueue] != "", Deleting: m.DeletionTimestamp != "",
		owner: m.controller(), quotaName: m.Labels[labelQuotaName],
		End: r.end(o), running: r.running(o), State: d.word(r.state(o)), Pods: -1,
	}
	f.Marked = f.Annotation == "true" || r.byField && f.Suspended && (r.also == nil || r.also(o))
	if r.managedBy != "" {
		by := o.text(r.managedBy)
		f.Foreign = f.Foreign || by != "" && by != r.operator
	}
	f.Unholdable = r.unholdable != nil && r.unholdable(o)
	if r.pods != nil {
		f.Pods = r.pods(o)
	}
	for _, key := range steering {
		f.steered += m.Annotations[key] + "," + m.Labels[key] + ","
	}
	f.steered = d.word(f.steered)
	return f, nil
}

// withParts are the kinds whose operators create other jobs as parts.
var withParts = []string{"JobSet", "TrainJob", "RayJob", "RayCluster", "MPIJob"}

// Queued reports whether the object may be queued. Parts of another job are not; objects of any other controller are.
func (f *jobFacts) Queued() bool {
	return !f.Foreign && (f.owner.UID == "" || !slices.Contains(withParts, f.owner.Kind))
}

// Unmarked reports whether the object has no mark, or belongs to another queue.
func (f *jobFacts) Unmarked() bool {
	return !f.Marked || f.Annotation != "" && f.Annotation != "true"
}

// eventFacts identifies the object of an event.
type eventFacts struct {
	uid, kind, namespace, name, reason, kindOf string
}

func parseEvent(d *decoder, _ string, _ *meta, raw json.RawMessage) (any, error) {
	type reference struct{ Kind, Namespace, Name, UID string }
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
	return &eventFacts{of.UID, d.word(of.Kind), d.word(of.Namespace), of.Name, d.word(e.Reason), d.word(e.Type)}, nil
}

type namespaceFacts struct{ managed bool }

func parseNamespace(_ *decoder, _ string, m *meta, _ json.RawMessage) (any, error) {
	return &namespaceFacts{managed: strings.EqualFold(m.Labels[labelManaged], "true")}, nil
}
