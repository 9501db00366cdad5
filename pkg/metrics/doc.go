// Package metrics defines the Prometheus metrics of the programs.
//
// Definitions is the only place where metrics are defined: the registry, the table of docs/reference/metrics.md, and
// the checks of alert rules and dashboards are derived from it. A Registry holds the metrics of one program. Controller
// and Extensions record the events of the two programs. The scheduling core does not use this package: its caller
// counts plans and the results of their writes. An attempt to admit counts when it is written, not at each comparison
// with a quota. The label framework comes from the name of the unit, because storing the kind of every waiting unit
// would take too much memory. Hand-made units are "other".
//
// Invariants. The values of each label are bounded: by the existing queues and quota nodes, or by constants in the
// code. The series of a queue or a node are deleted with it.
package metrics
