// Package alerts proves the alert rules and the dashboard of the chart, with the parser,
// the engine and the templates of Prometheus itself: each alert fires when its cause
// happens and is quiet otherwise, and nothing requests a metric or label that is not
// defined. What lasts for how long is counted here, for Prometheus's package for that
// imports its service discovery, with the clients of all clouds.
//
// What is defined is in the table of docs/reference/metrics.md, which is generated: so this
// module needs nothing of the product's.
package alerts
