package metrics

import "time"

// Extensions records the metrics of job-extensions. It is safe for concurrent use.
type Extensions struct{ registry *Registry }

// NewExtensions returns the recorder for the registry of job-extensions.
func NewExtensions(r *Registry) *Extensions { return &Extensions{r} }

// Seen counts a job of the kind that was queued.
func (e *Extensions) Seen(kind string) {
	e.registry.counters[jobsSeen].WithLabelValues(Framework(kind)).Inc()
}

// Released counts a released job and records the time since its admission.
func (e *Extensions) Released(kind string, after time.Duration) {
	e.registry.counters[jobsReleased].WithLabelValues(Framework(kind)).Inc()
	e.registry.histograms[releaseSeconds].WithLabelValues(Framework(kind)).Observe(max(after, 0).Seconds())
}

// Finished counts a job that has finished.
func (e *Extensions) Finished(kind string, succeeded bool) {
	result := "Failed"
	if succeeded {
		result = "Succeeded"
	}
	e.registry.counters[jobsFinished].WithLabelValues(Framework(kind), result).Inc()
}

// Missing records whether an enabled kind is missing from the API server. extension is the name of its extension.
func (e *Extensions) Missing(extension string, missing bool) {
	e.registry.gauges[kindMissing].WithLabelValues(extension).Set(truth(missing))
}

// Forbidden records whether job-extensions may not list or watch a resource.
func (e *Extensions) Forbidden(resource string, forbidden bool) {
	e.registry.gauges[watchForbidden].WithLabelValues(resource).Set(truth(forbidden))
}
