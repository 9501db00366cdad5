package metrics

import (
	"sync"

	kubemetrics "k8s.io/component-base/metrics"
)

// Node is the current state of a quota node.
type Node struct {
	Path      string
	Resources []Resource
}

// Resource is the state of one resource of a node, in the units of the metrics.
type Resource struct {
	Name                             string
	Used, Borrowed, Unqueued, Excess float64
	// Min and Max are nil if the node does not set them.
	Min, Max *float64
}

// quotaCollector converts the latest nodes into metrics at each scrape. There may be
// thousands of nodes, and converting them costs nothing between scrapes.
type quotaCollector struct {
	kubemetrics.BaseStableCollector
	descs map[string]*kubemetrics.Desc

	mu    sync.Mutex
	nodes []Node
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

func (c *quotaCollector) show(nodes []Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = nodes
}

// DescribeWithStability sends the descriptions of the metrics.
func (c *quotaCollector) DescribeWithStability(descs chan<- *kubemetrics.Desc) {
	for _, desc := range c.descs {
		descs <- desc
	}
}

// CollectWithStability sends the current values.
func (c *quotaCollector) CollectWithStability(metrics chan<- kubemetrics.Metric) {
	c.mu.Lock()
	nodes := c.nodes
	c.mu.Unlock()
	for _, node := range nodes {
		for _, r := range node.Resources {
			send := func(name string, value float64) {
				metrics <- kubemetrics.NewLazyConstMetric(c.descs[name], kubemetrics.GaugeValue, value, node.Path, r.Name)
			}
			send(quotaUsed, r.Used)
			send(quotaBorrowed, r.Borrowed)
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
