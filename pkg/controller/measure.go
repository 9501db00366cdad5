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

// measures updates the metrics from plans, their outcomes and the core. On an event, it only reads numbers that the
// core already has.
type measures struct {
	*metrics.Controller
	flushes, rescued int
}

// newMeasures returns measures. If controller is nil, the metrics are not exported.
func newMeasures(controller *metrics.Controller) *measures {
	if controller == nil {
		controller = metrics.NewController(metrics.New(metrics.ControllerProgram, ""))
	}
	return &measures{Controller: controller}
}

// decided records the end of a scheduling pass.
func (m *measures) decided(core *scheduler.Scheduler, took time.Duration) {
	m.Decided(took)
	flushes, rescued := core.Flushes(), core.Rescued()
	if flushes > m.flushes {
		m.Flushed(flushes-m.flushes, rescued-m.rescued)
		m.flushes, m.rescued = flushes, rescued
	}
}

// written records a write that succeeded.
func (m *measures) written(w *scheduler.Write, at time.Time) {
	switch w.Kind {
	case scheduler.Dequeue:
		_, name, _ := cache.SplitMetaNamespaceKey(w.Key) // the key always has this form
		m.Dequeued(w.Queue, metrics.FrameworkOf(name), w.Attempt == 1 && !w.Growth, at.Sub(time.UnixMicro(w.Submitted)))
	case scheduler.Explain:
		m.Refused(string(w.Reason))
	case scheduler.Evict:
		m.Evicted(w.Queue, string(w.Reason))
	case scheduler.Requeue:
		m.Requeued(string(w.Reason))
	}
}

// refused records a write that changed nothing.
func (m *measures) refused(w *scheduler.Write) {
	m.RolledBack(w.Kind.String(), w.Kind == scheduler.Dequeue)
}

// denied records a write that the API server denied.
func (m *measures) denied(w *scheduler.Write) {
	if w.Kind == scheduler.Dequeue {
		m.Denied()
	}
}

// show records the current counts of the queues, the usage of the quota and the requests of the queued units by node.
func (m *measures) show(l *loop, names []string, changed []scheduler.QueueStats, pending map[quota.NodeID]resources.Vector) {
	for _, q := range changed {
		shown := metrics.Queue{Name: q.Name, Pending: q.Pending, Reserved: q.Reserved, Dequeued: q.Dequeued, Running: q.Running,
			Waiting: q.Waits, Stopped: q.Stopped}
		if q.Submissions != nil {
			shown.First, shown.Mean = q.Submissions.First, q.Submissions.Mean
		}
		m.Queue(shown)
	}
	m.KeepQueues(names)
	m.ResourceNames(l.names.Len())
	validator, is := l.source.(backend.Validator)
	excesses, _ := l.core.Excesses()
	usage := l.core.Usage()
	m.Quota(metrics.Quota{
		Nodes: nodesOf(l.names, usage, l.core.ByPath(pending), excesses),
		Uses:  usesOf(l.names, usage, l.core.Consumption(l.now)),
		At:    l.now, Now: l.clock.Now,
	}, is && validator.Invalid() != "")
}

// usesOf converts the consumption of namespaces to metrics, for quotas that exist.
func usesOf(names *resources.Names, usage []quota.NodeUsage, consumed []scheduler.Consumption) (uses []metrics.Use) {
	named, exists := quota.Named(usage), make(map[string]bool, len(usage))
	for i := range usage {
		exists[usage[i].Path] = true
	}
	for _, c := range consumed {
		if !exists[c.Quota] {
			continue
		}
		ids := make(resources.Vector, 0, len(c.Amounts))
		for _, a := range c.Amounts {
			ids = append(ids, resources.Amount{ID: a.ID})
		}
		shown := quota.Show(ids, named, quota.MostUnlimited).Of(ids)
		for _, a := range c.Amounts {
			if _, is := shown.Get(a.ID); is {
				uses = append(uses, metrics.Use{Node: c.Quota, Namespace: c.Namespace, Resource: names.Name(a.ID), Used: a.Used, Total: a.Total})
			}
		}
	}
	return uses
}

// nodesOf converts usage, pending requests by path, and exceeded limits to metrics.
func nodesOf(names *resources.Names, usage []quota.NodeUsage, pending map[string]resources.Vector, excesses []quota.Excess) []metrics.Node {
	jobs, named, loans := names.ID(quota.JobsResource), quota.Named(usage), quota.NewLoans(usage)
	nodes := make([]metrics.Node, len(usage))
	for i, u := range usage {
		n := nodeOf{names: names, at: map[resources.ID]int{}}
		shown := quota.Show(u.Used, named, quota.MostUnlimited)
		for _, a := range shown.Of(u.Used) {
			n.of(a.ID).Used = n.float(a)
		}
		for _, a := range shown.Of(u.Unqueued) {
			n.of(a.ID).Unqueued = n.float(a)
		}
		for _, a := range u.Borrowed {
			n.of(a.ID).Borrowed = n.float(a)
		}
		for _, a := range loans.Lent(&u) {
			n.of(a.ID).Lent = n.float(a)
		}
		requested := pending[u.Path]
		for _, a := range quota.Show(requested, named, quota.MostUnlimited).Of(requested) {
			n.of(a.ID).Pending = n.float(a)
		}
		for _, a := range u.Min {
			n.of(a.ID).Min = new(n.float(a))
		}
		for _, a := range u.Max {
			n.of(a.ID).Max = new(n.float(a))
		}
		n.of(jobs).Used = float64(u.Jobs)
		for _, e := range excesses {
			if e.Node == u.Path {
				n.of(names.ID(e.Resource)).Excess = resources.Float(e.Resource, e.Used-e.Limit)
			}
		}
		nodes[i] = metrics.Node{Path: u.Path, Resources: n.resources}
	}
	return nodes
}

// nodeOf collects the figures of a node by resource.
type nodeOf struct {
	names     *resources.Names
	at        map[resources.ID]int
	resources []metrics.Resource
}

// of returns the figures of a resource. The pointer is valid until the next call.
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
