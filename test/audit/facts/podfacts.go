package facts

import (
	"encoding/json"
	"maps"
	"time"
)

// Pod describes a pod after a write.
type Pod struct {
	Owner    Owner
	Labelled string // the job in the label of a pod without a controller
	ByRow    *Row   // the row whose label names the job
	Over     bool   // it has ended
	Deleting bool
	Class    Class
	// Until is the end of the grace period of a pod that is being deleted, or zero.
	Until time.Time
	// Requests and Limits are read while the pod is new.
	Requests, Limits Amounts
}

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
	p := &Pod{
		Owner: m.controller(), Over: o.Status.Phase == "Succeeded" || o.Status.Phase == "Failed",
		Deleting: m.DeletionTimestamp != "", Until: m.until(),
		Class: o.Spec.class(o.Status.QOSClass == "BestEffort"),
	}
	p.Class.priority = d.word(p.Class.priority)
	if p.Owner.UID == "" {
		for _, r := range rows {
			if r.podLabel != "" && m.Labels[r.podLabel] != "" {
				p.Labelled, p.ByRow = m.Labels[r.podLabel], r
			}
		}
	}
	// Requests are needed only when the pod is created. A pod in a create request has no phase yet.
	if phase := o.Status.Phase; (phase == "Pending" || phase == "") && (o.Spec.NodeName == "" || o.Status.StartTime == "") {
		var err error
		if p.Requests, err = o.effective((*container).requests, o.Spec.Resources.Requests, false); err != nil {
			return nil, err
		}
		if p.Limits, err = o.effective((*container).limits, o.Spec.Resources.Limits, true); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// effective returns the effective requests or limits of the pod: the sum of its containers, or the
// amount of an init container with the sidecars started before it, if that is larger. Amounts of the
// pod replace those of its containers. Overhead is added, but only to limits that are set.
func (o *podObject) effective(says func(*container) (Amounts, error), ofPod Quantities, limits bool) (Amounts, error) {
	together, sidecars, starting := Amounts{}, Amounts{}, Amounts{}
	for _, c := range o.Spec.InitContainers {
		said, err := says(&c)
		if err != nil {
			return nil, err
		}
		if c.RestartPolicy == "Always" {
			sidecars.AddTimes(said, 1)
			starting.Raise(sidecars)
			continue
		}
		now := maps.Clone(sidecars)
		now.AddTimes(said, 1)
		starting.Raise(now)
	}
	for _, c := range o.Spec.Containers {
		said, err := says(&c)
		if err != nil {
			return nil, err
		}
		together.AddTimes(said, 1)
	}
	together.AddTimes(sidecars, 1)
	together.Raise(starting)
	whole, err := ofPod.Ceil()
	if err != nil {
		return nil, err
	}
	maps.Copy(together, whole)
	overhead, err := o.Spec.Overhead.Ceil()
	if err != nil {
		return nil, err
	}
	for name, n := range overhead {
		if _, set := together[name]; set || !limits {
			together[name] += n
		}
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
