// Package metrics is what the programs tell Prometheus about themselves.
//
// Definitions is the one place where a metric is defined: what is registered, the
// table of docs/reference/metrics.md, and what alert rules and dashboards may use all come from
// there. A Registry holds those of one program; Controller and Extensions are what the
// shells of the two programs count with. The core knows of none of this: it is counted
// what its plans, and the outcomes of their writes, say.
//
// Invariants. The values of each label are bounded: by the queues and quota nodes that
// there are, or by words that are fixed in the code. What reports a queue or a node
// that is gone is gone with it.
package metrics
