package metrics

import (
	"sync"

	kubemetrics "k8s.io/component-base/metrics"
)

// Node is how a node of the quota is now.
type Node struct {
	Path      string
	Resources []Resource
}

// Resource is what a node has of one resource, in the units of the metrics.
type Resource struct {
	Name           string
	Used, Borrowed float64
	// Min and Max are nil where the node names none.
	Min, Max *float64
}

// quotaCollector turns the nodes that it was shown last into metrics when it is asked:
// there may be thousands of them, and what is not asked for costs nothing.
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

// DescribeWithStability reports which metrics there are.
func (c *quotaCollector) DescribeWithStability(descs chan<- *kubemetrics.Desc) {
	for _, desc := range c.descs {
		descs <- desc
	}
}

// CollectWithStability reports what they are now.
func (c *quotaCollector) CollectWithStability(metrics chan<- kubemetrics.Metric) {
	c.mu.Lock()
	nodes := c.nodes
	c.mu.Unlock()
	for _, node := range nodes {
		for _, r := range node.Resources {
			tell := func(name string, value float64) {
				metrics <- kubemetrics.NewLazyConstMetric(c.descs[name], kubemetrics.GaugeValue, value, node.Path, r.Name)
			}
			tell(quotaUsed, r.Used)
			tell(quotaBorrowed, r.Borrowed)
			if r.Min != nil {
				tell(quotaMin, *r.Min)
			}
			if r.Max != nil {
				tell(quotaMax, *r.Max)
			}
		}
	}
}
