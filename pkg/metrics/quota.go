package metrics

import (
	"sync"
	"time"

	kubemetrics "k8s.io/component-base/metrics"

	"kube-queue.dev/kube-queue/pkg/resources"
)

// Quota is the current state of the quota.
type Quota struct {
	Nodes []Node
	Uses  []Use
	// At is the time of this state, and Now returns the current time.
	At  time.Time
	Now func() time.Time
}

// Node is the current state of a quota node.
type Node struct {
	Path      string
	Resources []Resource
}

// Resource is the state of one resource of a node, in the units of the metrics.
type Resource struct {
	Name                                            string
	Used, Borrowed, Lent, Pending, Unqueued, Excess float64
	// Min and Max are nil if the node does not set them.
	Min, Max *float64
}

// Use is a namespace's usage of one resource of a quota.
type Use struct {
	Node, Namespace, Resource string
	// Used is in base units, and Total is its integral over time in base units times microseconds.
	Used, Total resources.Sum
}

// quotaCollector converts the latest state into metrics at each scrape. There may be thousands of nodes, so it does no
// work between scrapes.
type quotaCollector struct {
	kubemetrics.BaseStableCollector
	descs map[string]*kubemetrics.Desc

	mu    sync.Mutex
	quota Quota
	// until is when the state may have changed; zero while it has not.
	until time.Time
}

func newQuotaCollector() *quotaCollector {
	c := &quotaCollector{descs: map[string]*kubemetrics.Desc{}}
	for _, d := range Definitions() {
		if d.collected {
			c.descs[d.Name] = kubemetrics.NewDesc(d.Name, d.Help, d.Labels, nil, kubemetrics.ALPHA, "")
		}
	}
	return c
}

func (c *quotaCollector) show(q Quota) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quota, c.until = q, time.Time{}
}

// changes records that the state may change from now on, and unchanged that it did not.
func (c *quotaCollector) changes(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until.IsZero() {
		c.until = now
	}
}

func (c *quotaCollector) unchanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
}

// latest returns the latest state, and how long it is known to have lasted, in microseconds.
func (c *quotaCollector) latest() (q Quota, lasted int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	until := c.until
	if until.IsZero() && c.quota.Now != nil {
		until = c.quota.Now()
	}
	return c.quota, max(until.Sub(c.quota.At).Microseconds(), 0)
}

// DescribeWithStability sends the descriptions of the metrics.
func (c *quotaCollector) DescribeWithStability(descs chan<- *kubemetrics.Desc) {
	for _, desc := range c.descs {
		descs <- desc
	}
}

// CollectWithStability sends the current values.
func (c *quotaCollector) CollectWithStability(metrics chan<- kubemetrics.Metric) {
	quota, lasted := c.latest()
	for _, u := range quota.Uses {
		total := u.Total.Add(u.Used.Times(lasted))
		metrics <- kubemetrics.NewLazyConstMetric(c.descs[quotaUsedSeconds], kubemetrics.CounterValue, resources.FloatSeconds(u.Resource, total), u.Node, u.Namespace, u.Resource)
	}
	for _, node := range quota.Nodes {
		for _, r := range node.Resources {
			send := func(name string, value float64) {
				metrics <- kubemetrics.NewLazyConstMetric(c.descs[name], kubemetrics.GaugeValue, value, node.Path, r.Name)
			}
			send(quotaUsed, r.Used)
			send(quotaBorrowed, r.Borrowed)
			send(quotaLent, r.Lent)
			send(quotaPending, r.Pending)
			send(quotaUnqueued, r.Unqueued)
			send(quotaExcess, r.Excess)
			if r.Min != nil {
				send(quotaMin, *r.Min)
			}
			if r.Max != nil {
				send(quotaMax, *r.Max)
			}
		}
	}
}
