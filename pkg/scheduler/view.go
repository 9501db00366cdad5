package scheduler

import (
	"maps"
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// View is the state of the core at one time. It never changes, so any goroutine can read it while the core continues.
type View struct {
	At time.Time
	// Names are the names of the resources. Backend is the quota with all charges; nil if there is none or if the
	// backend cannot be copied.
	Names   *resources.Names
	Backend quota.Explainer
	// Missing explains why there is no quota.
	Missing *quota.Refusal
	// Usage is the usage of all nodes, in the order of the backend.
	Usage  []quota.NodeUsage
	Queues []QueueView
	// Units are in no particular order.
	Units []UnitView
	// Evictions are the evictions of units for others that have not started yet.
	Evictions []EvictionView
	// Left are the charges that belong to no unit.
	Left []quota.Charged
	// Checks are the names of the admission checks that exist.
	Checks []string
	// DefaultPolicy is the policy of queues that set none. Backoff is that of policy RoundRobin.
	DefaultPolicy *queue.Policy
	Backoff       queue.Backoff
	// MinRunTime applies to queues that set none.
	MinRunTime time.Duration
	// Off are the kinds of jobs that are not admitted, and why.
	Off map[JobKind]*quota.Refusal
}

// QueueView is a queue in a View.
type QueueView struct {
	QueueStats
	// Nodes are the nodes at which the group of the queue is charged, from its own to the root.
	Nodes []quota.NodeID
	// Settings are those made by an administrator, and what the queue has learned.
	Settings QueueChanged
}

// UnitView is a unit in a View. It stores times as numbers, not as time.Time, because there can be a million units.
type UnitView struct {
	Key, UID, QuotaName string
	Kind                JobKind
	// Queue is the index of the queue; -1 if the unit has none.
	Queue int32
	// Phase is the phase, or the one that an unconfirmed decision gives the unit.
	Phase Phase
	// Priority is the priority as capped by the queue.
	Priority int32
	// MaxSeconds is how long the unit can run after its release; 0 means no limit.
	MaxSeconds int32
	// Expected is how long its owner expects the unit to run.
	Expected Expected
	// Length is that of its item.
	Length queue.Length
	// Submitted is in microseconds since 1970.
	Submitted int64
	Demand    quota.Demand
	// Elastic, if set, describes how the unit may be admitted with fewer pods. Demand is then the least that it can start
	// with, or what it was admitted with.
	Elastic *Elastic
	// Held is whether the unit is not tried, no matter how much room there is.
	Held bool
	// Refusal is why the unit waits, as found when it was last tried, or why its job is not released; nil for neither.
	Refusal *quota.Refusal
	// Charge is what the unit is charged, and Path is the path of the group; nil if it is not charged. Remains is
	// whether it is charged to what is left of a removed group.
	Charge  *quota.Charge
	Path    string
	Remains bool
	// Evicted is whether the unit is being evicted.
	Evicted bool
	// Unstoppable is whether the job continues when it is suspended. Growth is as in Facts.
	Unstoppable, Growth bool

	dequeuedAt, endsAt, requeueAt instant
}

// EvictionView is an eviction in a View.
type EvictionView struct {
	// Unit is the index of the unit that is evicted, and For the UID of the one that gets its room.
	Unit int32
	For  string
}

// DequeuedAt returns when the unit was admitted; zero if it never was, or if it holds quota and is not released yet.
func (u *UnitView) DequeuedAt() time.Time { return u.dequeuedAt.time() }

// Charged returns what the unit is charged, and to which group. The unit must have a charge.
func (u *UnitView) Charged() quota.Charged {
	return quota.Charged{Path: u.Path, Remains: u.Remains, Charge: u.Charge}
}

// EndsAt returns when the maximum execution time of the unit ends; zero if it has none.
func (u *UnitView) EndsAt() time.Time { return u.endsAt.time() }

// RequeueAt returns when the unit is queued again; zero if it is not in backoff.
func (u *UnitView) RequeueAt() time.Time { return u.requeueAt.time() }

// View returns the current state. It takes time proportional to the number of units, and does not copy what never
// changes. The demands must have been built with names.
func (s *Scheduler) View(now time.Time, names *resources.Names) *View {
	usage := s.Usage() // it can add names
	v := &View{At: now, Names: names.Clone(), Missing: s.missing, Usage: usage,
		Checks: slices.Sorted(maps.Keys(s.checks)), DefaultPolicy: s.defaultPolicy, Backoff: s.backoff, MinRunTime: s.minRunTime, Off: s.off}
	if backend, is := s.backend.(quota.Explainer); is {
		v.Backend = backend.Clone(v.Names)
	}
	for _, name := range s.QueueNames() {
		q := s.queues[name]
		q.viewed = int32(len(v.Queues))
		settings := q.set
		settings.Learned = q.knows().Clone()
		v.Queues = append(v.Queues, QueueView{QueueStats: s.stats(q, now), Nodes: q.Group.Nodes(), Settings: settings})
	}
	shared := sharedRefusals{}
	v.Units = make([]UnitView, 0, len(s.units))
	for key, u := range s.units {
		if u.countedPhase() == Ended && u.charged == nil {
			continue
		}
		seen := UnitView{Key: key, UID: u.UID, Kind: u.Kind, QuotaName: u.QuotaName, Queue: -1, Phase: u.countedPhase(),
			Priority: u.Priority, MaxSeconds: u.MaxSeconds, Expected: u.Expected, Submitted: u.Submitted, Demand: u.Demand,
			Evicted: u.Evicted, Unstoppable: u.Unstoppable, Growth: u.Growth,
			dequeuedAt: u.dequeuedAt, endsAt: u.endsAt(), Refusal: u.refusalShared(now, shared)}
		if u.Elastic != nil { // the core changes its own
			seen.Elastic = new(*u.Elastic)
		}
		if u.assumed || u.Phase == Reserved {
			seen.dequeuedAt = 0 // it may be that of an earlier admission
		}
		if u.queue != nil {
			seen.Queue, seen.Length = u.queue.viewed, u.queue.lengthOf(u)
			seen.Priority = u.queue.set.MaxPriority.Of(u.Priority)
		}
		if seen.Phase == Waiting {
			seen.Held = u.Held != nil || u.placeRefusal != nil
			if instantOf(now) < u.requeueAt {
				seen.requeueAt = u.requeueAt
			}
		}
		if u.Phase == Dequeued && s.off[u.Kind] != nil {
			seen.Refusal = s.off[u.Kind]
		}
		if u.charged != nil {
			c := u.charged.view()
			seen.Charge, seen.Path, seen.Remains = c.Charge, c.Path, c.Remains
		}
		if u.leaving != nil && u.leaving.forUID != "" && !u.leaving.served {
			v.Evictions = append(v.Evictions, EvictionView{Unit: int32(len(v.Units)), For: u.leaving.forUID})
		}
		v.Units = append(v.Units, seen)
	}
	for _, h := range s.holders {
		if h.left != nil {
			v.Left = append(v.Left, h.left.view())
		}
	}
	for _, c := range s.strays {
		v.Left = append(v.Left, c.view())
	}
	return v
}

// Declared is what is declared about the run time of the unit.
func (u *UnitView) Declared() forecast.Declared {
	return forecast.Declared{Limit: time.Duration(u.MaxSeconds) * time.Second, Expected: u.Expected.Duration()}
}

// view returns the charge and what identifies its group in a copy of the backend. What is left of a removed group has
// no queue.
func (c *charge) view() quota.Charged {
	return quota.Charged{Path: c.group.Path(), Remains: c.group.Queue() == "", Charge: &c.Charge}
}

// Run describes a running unit.
type Run struct {
	// Queue is the name of its queue; empty if it has none.
	Queue string
	forecast.Declared
	Since time.Time
}

// RunOf returns the Run of the unit; false if it does not run.
func (s *Scheduler) RunOf(key string) (r Run, runs bool) {
	u := s.units[key]
	if u == nil || u.Growth || !u.runs() {
		return Run{}, false
	}
	if u.queue != nil {
		r.Queue = u.queue.name
	}
	r.Declared, r.Since = forecast.Declared{Limit: time.Duration(u.MaxSeconds) * time.Second, Expected: u.Expected.Duration()}, u.dequeuedAt.time()
	return r, true
}
