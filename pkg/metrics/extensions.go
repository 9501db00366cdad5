package metrics

import "time"

// Extensions is what job-extensions counts with. Safe for concurrent use.
type Extensions struct{ registry *Registry }

// NewExtensions makes what counts into the registry, which is that of job-extensions.
func NewExtensions(r *Registry) *Extensions { return &Extensions{r} }

// Seen takes in that a job of the kind was put in line.
func (e *Extensions) Seen(kind string) {
	e.registry.counters[jobsSeen].WithLabelValues(Framework(kind)).Inc()
}

// Released takes in that a job was released, so long after that was decided.
func (e *Extensions) Released(kind string, after time.Duration) {
	e.registry.counters[jobsReleased].WithLabelValues(Framework(kind)).Inc()
	e.registry.histograms[releaseSeconds].WithLabelValues(Framework(kind)).Observe(max(after, 0).Seconds())
}

// Finished takes in that a job has ended.
func (e *Extensions) Finished(kind string, succeeded bool) {
	result := "Failed"
	if succeeded {
		result = "Succeeded"
	}
	e.registry.counters[jobsFinished].WithLabelValues(Framework(kind), result).Inc()
}

// Missing reports whether an enabled kind, by its name as an extension, is not served.
func (e *Extensions) Missing(extension string, missing bool) {
	e.registry.gauges[kindMissing].WithLabelValues(extension).Set(truth(missing))
}
