package controller

import (
	"time"

	"k8s.io/client-go/tools/cache"

	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/pkg/quota"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
)

const (
	// AuditInterval is how often it is proved that used quota is the sum of what units
	// hold. It takes as long as all that is charged, so it is not done after each event.
	AuditInterval = 5 * time.Minute
	// mostLogged is how many broken invariants of one audit are logged.
	mostLogged = 20
)

// measures counts, for Prometheus, what the plans, their outcomes and the core say. The
// core is not asked for anything at an event but for numbers that it has.
type measures struct {
	*metrics.Controller
	flushes, rescued int
	// audits reports whether invariants are proved at run time, auditAt when next.
	audits  bool
	auditAt time.Time
}

// newMeasures takes nil for where nobody looks.
func newMeasures(controller *metrics.Controller, audits bool) *measures {
	if controller == nil {
		controller = metrics.NewController(metrics.New(metrics.ControllerProgram, ""))
	}
	return &measures{Controller: controller, audits: audits}
}

// decided takes in that a pass has ended.
func (m *measures) decided(core *scheduler.Scheduler, took time.Duration) {
	m.Decided(took)
	flushes, rescued := core.Flushes(), core.Rescued()
	if flushes > m.flushes {
		m.Flushed(flushes-m.flushes, rescued-m.rescued)
		m.flushes, m.rescued = flushes, rescued
	}
}

// written takes in that a write of the plan was made.
func (m *measures) written(w *scheduler.Write, at time.Time) {
	switch w.Kind {
	case scheduler.Dequeue:
		_, name, _ := cache.SplitMetaNamespaceKey(w.Key) // it was made of the two
		m.Dequeued(w.Queue, metrics.FrameworkOf(name), w.Attempt == 1, at.Sub(time.UnixMicro(w.Submitted)))
	case scheduler.Explain:
		m.Refused(string(w.Reason))
	case scheduler.Evict:
		m.Evicted(string(w.Reason))
	case scheduler.Requeue:
		m.Requeued(string(w.Reason))
	}
}

// refused takes in that one was not.
func (m *measures) refused(w *scheduler.Write) {
	m.RolledBack(w.Kind.String(), w.Kind == scheduler.Dequeue)
}

// audit proves the core's invariants where it is time to, and reports when it is next; zero
// for never. What is broken does not end the program: it may be the one that holds the
// others together.
func (m *measures) audit(l *loop) time.Time {
	now := l.now
	switch {
	case !m.audits:
		return time.Time{}
	case m.auditAt.IsZero():
	case now.Before(m.auditAt):
		return m.auditAt
	default:
		broken := l.core.Audit(l.names.Name)
		m.Audited(len(broken))
		for _, err := range broken[:min(len(broken), mostLogged)] {
			l.logger.Error(err, "An invariant is broken; this is a bug, please report it", "broken", len(broken))
		}
	}
	m.auditAt = now.Add(AuditInterval)
	return m.auditAt
}

// show takes in how the queues and the quota are now.
func (m *measures) show(l *loop, names []string, changed []scheduler.QueueStats) {
	for _, q := range changed {
		m.Queue(metrics.Queue{Name: q.Name, Pending: q.Pending, Reserved: q.Reserved, Dequeued: q.Dequeued, Running: q.Running,
			Waiting: q.Head != "", Stopped: q.Stopped})
	}
	m.KeepQueues(names)
	judge, judges := l.source.(backend.Validator)
	m.Quota(nodesOf(l.names, l.core.Usage()), judges && judge.Invalid() != "")
}

// nodesOf turns usage into what is measured.
func nodesOf(names *resources.Names, usage []quota.NodeUsage) []metrics.Node {
	jobs := names.ID(quota.JobsResource)
	nodes := make([]metrics.Node, len(usage))
	for i, u := range usage {
		n := nodeOf{names: names, at: map[resources.ID]int{}}
		for _, a := range u.Used {
			n.of(a.ID).Used = n.float(a)
		}
		for _, a := range u.Borrowed {
			n.of(a.ID).Borrowed = n.float(a)
		}
		for _, a := range u.Min {
			n.of(a.ID).Min = new(n.float(a))
		}
		for _, a := range u.Max {
			n.of(a.ID).Max = new(n.float(a))
		}
		n.of(jobs).Used = float64(u.Jobs)
		nodes[i] = metrics.Node{Path: u.Path, Resources: n.resources}
	}
	return nodes
}

// nodeOf gathers what a node has of each resource.
type nodeOf struct {
	names     *resources.Names
	at        map[resources.ID]int
	resources []metrics.Resource
}

// of is valid until the next call.
func (n *nodeOf) of(id resources.ID) *metrics.Resource {
	at, known := n.at[id]
	if !known {
		at = len(n.resources)
		n.at[id] = at
		n.resources = append(n.resources, metrics.Resource{Name: n.names.Name(id)})
	}
	return &n.resources[at]
}

func (n *nodeOf) float(a resources.Amount) float64 {
	return resources.Float(n.names.Name(a.ID), a.Value)
}
