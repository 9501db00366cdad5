package serving

import (
	"fmt"
	"net"

	"kube-queue.dev/kube-queue/pkg/program/settings"
)

// Options are the settings of the HTTP endpoints.
type Options struct {
	healthAddress string
	// profilingAddress is empty by default, because profiles are served without
	// authentication.
	profilingAddress string
	metrics          metricsOptions
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{healthAddress: ":8081", metrics: defaultMetricsOptions()}
}

// Declare adds the settings to the set.
func (o *Options) Declare(set *settings.Set) {
	set.Group("Health and profiles", o.health(),
		settings.Setting{Var: &o.profilingAddress, Flag: "profiling-bind-address", Field: "profiling.bindAddress", Check: o.checkProfiling,
			Help: "Loopback address, such as localhost:6060, for Go profiles at /debug/pprof/ without authentication. If unset: disabled."})
	o.metrics.declare(set)
}

// DeclareHealth adds only the setting of the health checks.
func (o *Options) DeclareHealth(set *settings.Set) { set.Group("Health", o.health()) }

func (o *Options) health() settings.Setting {
	return settings.Setting{Var: &o.healthAddress, Flag: "health-bind-address", Field: "health.bindAddress",
		Help: "Address for /healthz and /readyz; 0 to disable them."}
}

// checkProfiling rejects an address that is reachable from outside this host or pod, because profiles are served
// without authentication. kubectl port-forward reaches the loopback interface.
func (o *Options) checkProfiling() error {
	if off(o.profilingAddress) {
		return nil
	}
	host, _, err := net.SplitHostPort(o.profilingAddress)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q is not on the loopback interface; use localhost, 127.0.0.1 or [::1]", o.profilingAddress)
	}
	return nil
}

// Validate checks settings that depend on each other.
func (o *Options) Validate() error { return o.metrics.validate() }
