package model

import (
	"encoding/json"
	"time"
)

// podFacts is a pod as one write left it.
type podFacts struct {
	owner     owner
	labelled  string // the job that a label names, for pods that nothing controls
	byRow     *row   // whose label it is
	phase     string
	deleting  bool
	scheduled bool
	Class     class
	// until is when a pod that is being deleted is past its time; zero: it is not.
	until time.Time
	// Requests and limits are read while the pod is new.
	Requests, Limits Amounts
}

// over reports whether the pod's containers have ended.
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
		owner: m.controller(), phase: d.word(o.Status.Phase),
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
	// A pod's requests are of interest once, when it is created; as it is sent for that,
	// it has no phase yet.
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

// effective is what the pod takes on a node: its containers together, or more
// where an init container needs it, with the sidecars that were started before.
// Requests of the whole pod take the place of its containers'.
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

// limits of the pod are summed up as its requests are; overhead raises only those
// that there are.
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

// together sums up what each container says, and has what the whole pod says take
// the place of it.
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

// requests of a container; a limit replaces a missing one.
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
