package metrics

import (
	"net/http"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	kubemetrics "k8s.io/component-base/metrics"
)

// Registry holds the metrics of one program.
type Registry struct {
	program    string
	kube       kubemetrics.KubeRegistry
	counters   map[string]*kubemetrics.CounterVec
	gauges     map[string]*kubemetrics.GaugeVec
	histograms map[string]*kubemetrics.HistogramVec
}

// New creates all metrics that are defined for the program.
func New(program, version string) *Registry {
	r := &Registry{program: program, kube: kubemetrics.NewKubeRegistry(),
		counters:   map[string]*kubemetrics.CounterVec{},
		gauges:     map[string]*kubemetrics.GaugeVec{},
		histograms: map[string]*kubemetrics.HistogramVec{}}
	for _, d := range Definitions() {
		if d.in(program) && !d.collected {
			r.register(d)
		}
	}
	r.gauges[buildInfo].WithLabelValues(program, version, runtime.Version()).Set(1)
	r.Lead(false)
	return r
}

// register creates the metric. A metric without labels starts at 0, so that Prometheus
// detects its first increase.
func (r *Registry) register(d Definition) {
	const level = kubemetrics.ALPHA
	switch d.Type {
	case Counter:
		vec := kubemetrics.NewCounterVec(&kubemetrics.CounterOpts{Name: d.Name, Help: d.Help, StabilityLevel: level}, d.Labels)
		r.kube.MustRegister(vec)
		r.counters[d.Name] = vec
		if len(d.Labels) == 0 {
			vec.WithLabelValues()
		}
	case Gauge:
		vec := kubemetrics.NewGaugeVec(&kubemetrics.GaugeOpts{Name: d.Name, Help: d.Help, StabilityLevel: level}, d.Labels)
		r.kube.MustRegister(vec)
		r.gauges[d.Name] = vec
		if len(d.Labels) == 0 {
			vec.WithLabelValues()
		}
	case Histogram:
		vec := kubemetrics.NewHistogramVec(&kubemetrics.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.Buckets, StabilityLevel: level}, d.Labels)
		r.kube.MustRegister(vec)
		r.histograms[d.Name] = vec
		if len(d.Labels) == 0 {
			vec.WithLabelValues()
		}
	}
}

// EventDropped counts a dropped event by the API server's reason.
func (r *Registry) EventDropped(reason string) {
	r.counters[eventsDropped].WithLabelValues(reason).Inc()
}

// Lead records whether the process leads and is ready.
func (r *Registry) Lead(works bool) {
	r.gauges[leader].WithLabelValues(r.program).Set(truth(works))
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Handler serves the metrics of the registry and of the other gatherers.
func (r *Registry) Handler(others ...kubemetrics.Gatherer) http.Handler {
	all := prometheus.Gatherers{r.kube}
	for _, other := range others {
		all = append(all, other)
	}
	return kubemetrics.HandlerFor(all, kubemetrics.HandlerOpts{ErrorHandling: kubemetrics.ContinueOnError})
}
