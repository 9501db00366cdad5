package model

import (
	"encoding/json"
	"strings"
	"time"
)

// queueFacts describes a Queue after a write: its group, and its stop setting.
type queueFacts struct{ quota, stop string }

func parseQueue(d *decoder, kind string, _ *meta, raw json.RawMessage) (any, error) {
	if kind != "Queue" {
		return nil, nil
	}
	var o struct {
		Spec   struct{ Stop string }
		Status struct{ Quota string }
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	return &queueFacts{quota: d.word(o.Status.Quota), stop: d.word(o.Spec.Stop)}, nil
}

// line is a Queue with its stop settings in order, the latest last.
type line struct {
	quota  string
	Orders []order
}

type order struct {
	Stop string
	from time.Time
}

// lines has the Queues by name.
type lines map[string]*line

// apply applies a write of a Queue. A deleted Queue has no stop setting.
func (l lines) apply(o *Options, w *Write, facts *queueFacts) {
	if !strings.Contains(o.Controller, ":"+w.Namespace+":") {
		return
	}
	q := l[w.Name]
	if q == nil {
		q = &line{}
		l[w.Name] = q
	}
	stop := ""
	if facts != nil && !w.gone {
		stop = facts.stop
		if facts.quota != "" {
			q.quota = facts.quota
		}
	}
	if n := len(q.Orders); n == 0 || q.Orders[n-1].Stop != stop {
		q.Orders = append(q.Orders, order{stop, w.Time})
	}
}

// within returns the stop settings that were in force at a time, or at most lag before it.
func (q *line) within(now time.Time, lag time.Duration) []string {
	var stops []string
	for i, o := range q.Orders {
		if i+1 == len(q.Orders) || now.Sub(q.Orders[i+1].from) <= lag {
			stops = append(stops, o.Stop)
		}
	}
	if len(q.Orders) == 0 || now.Sub(q.Orders[0].from) <= lag {
		stops = append(stops, "") // before it was created
	}
	return stops
}

// of returns the Queues of a unit: the one that it names, and the one of its group in the tree.
func (l lines) of(w *World, u *Unit, says string, now time.Time) []*line {
	var found []*line
	paths := map[string]bool{}
	for _, r := range w.Forest.Ruling(now, *w.Options.TreeLag) {
		if group, err := r.Tree.Group(u.Namespace, u.Facts.quotaName); err == nil {
			paths[group.Path] = true
		}
	}
	for name, q := range l {
		if name == says || q.quota != "" && paths[q.quota] {
			found = append(found, q)
		}
	}
	return found
}

// Drained reports whether a Queue of the unit is drained.
func (w *World) Drained(u *Unit, says string, now time.Time) bool {
	for _, q := range w.Lines.of(w, u, says, now) {
		for _, stop := range q.within(now, *w.Options.TreeLag) {
			if stop == "Drain" {
				return true
			}
		}
	}
	return false
}

// Stopped reports whether the Queue that a unit names is stopped.
func (w *World) Stopped(says string, now time.Time) bool {
	q := w.Lines[says]
	if q == nil {
		return false
	}
	for _, stop := range q.within(now, *w.Options.TreeLag) {
		if stop != "Hold" && stop != "Drain" {
			return false
		}
	}
	return true
}
