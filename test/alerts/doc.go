// Package alerts tests the alert rules and the dashboard of the chart with the parser, the engine and the templates
// of Prometheus. Each alert must fire when its cause occurs and not otherwise, and only defined metrics and labels
// may be used. The package implements the duration of alerts itself, because Prometheus's package imports service
// discovery with the clients of all clouds.
//
// It also draws the dashboard pictures in the documentation from recorded metrics, which "make dashboard" updates.
//
// The defined metrics come from the generated table in docs/reference/metrics.md, so this module needs only the
// drawing package of the main module.
package alerts
