package model

import (
	"encoding/json"
	"time"
)

// podFacts describes a pod after a write.
type podFacts struct {
	ownerFacts
	owner     owner
	labelled  string // the job in the label of a pod without a controller
	byRow     *row   // the row whose label names the job
	phase     string
	deleting  bool
	scheduled bool
	Class     class
	// until is the end of the grace period of a pod that is being deleted, or zero.
	until time.Time
	// Requests and limits are read while the pod is new.
	Requests, Limits Amounts
}

// ownerFacts describe after a write whether a pod is an orphan.
type ownerFacts struct {
	owned bool
	// label is the value of a label by which an operator names the job of a pod, or an object between
	// both: its name or UID. It is empty if there is none.
	label string
}

// jobLabels are the labels by which operators name the job of a pod that has lost its owners.
var jobLabels = []string{
	"jobset.sigs.k8s.io/jobset-uid", "batch.kubernetes.io/controller-uid",
	"ray.io/cluster", "ray.io/originated-from-cr-name", "training.kubeflow.org/job-name",
	"sparkoperator.k8s.io/app-name", "workflows.argoproj.io/workflow",
}

func (d *decoder) owners(m *meta) ownerFacts {
	f := ownerFacts{owned: len(m.OwnerReferences) > 0}
	for _, label := range jobLabels {
		if value := m.Labels[label]; f.label == "" {
			f.label = d.word(value)
		}
	}
	return f
}

// over reports whether the pod has ended.
func (p *podFacts) over() bool { return p.phase == "Succeeded" || p.phase == "Failed" }

type container struct {
	RestartPolicy string
	Resources     struct{ Requests, Limits Quantities }
}

type podObject struct {
	Spec struct {
		NodeName                   string
		Containers, InitContainers []container
		Overhead                   Quantities
		Resources                  struct{ Requests, Limits Quantities }
		classSpec
	}
	Status struct{ Phase, QOSClass, StartTime string }
}

func parsePod(d *decoder, kind string, m *meta, raw json.RawMessage) (any, error) {
	if kind != "Pod" {
		return nil, nil
	}
	var o podObject
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	p := &podFacts{
		ownerFacts: d.owners(m), owner: m.controller(), phase: d.word(o.Status.Phase),
		deleting: m.DeletionTimestamp != "", scheduled: o.Spec.NodeName != "", until: m.until(),
		Class: o.Spec.class(o.Status.QOSClass == "BestEffort"),
	}
	p.Class.priority = d.word(p.Class.priority)
	if p.owner.UID == "" {
		for _, r := range rows {
			if r.podLabel != "" && m.Labels[r.podLabel] != "" {
				p.labelled, p.byRow = m.Labels[r.podLabel], r
			}
		}
	}
	// Requests are needed only when the pod is created. A pod in a create request has no phase yet.
	if (p.phase == "Pending" || p.phase == "") && (!p.scheduled || o.Status.StartTime == "") {
		var err error
		if p.Requests, err = o.effective(); err != nil {
			return nil, err
		}
		if p.Limits, err = o.limits(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// effective returns the effective request of the pod: the sum of its containers, or the request of
// an init container with the sidecars started before it, if that is larger. Pod-level requests
// replace those of the containers.
func (o *podObject) effective() (Amounts, error) {
	together, err := o.together((*container).requests, o.Spec.Resources.Requests)
	if err != nil {
		return nil, err
	}
	overhead, err := o.Spec.Overhead.Ceil()
	if err != nil {
		return nil, err
	}
	together.AddTimes(overhead, 1)
	return together, nil
}

// limits returns the effective limits, which are computed like the requests. Overhead is added only
// to limits that are set.
func (o *podObject) limits() (Amounts, error) {
	together, err := o.together((*container).limits, o.Spec.Resources.Limits)
	if err != nil {
		return nil, err
	}
	overhead, err := o.Spec.Overhead.Ceil()
	if err != nil {
		return nil, err
	}
	for name, n := range overhead {
		if _, ok := together[name]; ok {
			together.AddTimes(Amounts{name: n}, 1)
		}
	}
	return together, nil
}

// together aggregates the amounts of the containers. Amounts of the pod replace those of its
// containers.
func (o *podObject) together(says func(*container) (Amounts, error), ofPod Quantities) (Amounts, error) {
	together, sidecars, starting := Amounts{}, Amounts{}, Amounts{}
	for _, c := range o.Spec.InitContainers {
		said, err := says(&c)
		if err != nil {
			return nil, err
		}
		if c.RestartPolicy == "Always" {
			sidecars.AddTimes(said, 1)
			starting.most(sidecars)
			continue
		}
		now := Amounts{}
		now.AddTimes(sidecars, 1)
		now.AddTimes(said, 1)
		starting.most(now)
	}
	for _, c := range o.Spec.Containers {
		said, err := says(&c)
		if err != nil {
			return nil, err
		}
		together.AddTimes(said, 1)
	}
	together.AddTimes(sidecars, 1)
	together.most(starting)
	whole, err := ofPod.Ceil()
	if err != nil {
		return nil, err
	}
	for name, n := range whole {
		together[name] = n
	}
	return together, nil
}

func (c *container) limits() (Amounts, error) { return c.Resources.Limits.Ceil() }

// requests returns the requests of a container. A limit replaces a missing request.
func (c *container) requests() (Amounts, error) {
	requests, err := c.Resources.Requests.Ceil()
	if err != nil {
		return nil, err
	}
	limits, err := c.Resources.Limits.Ceil()
	if err != nil {
		return nil, err
	}
	for name, n := range limits {
		if _, ok := requests[name]; !ok {
			requests[name] = n
		}
	}
	return requests, nil
}
