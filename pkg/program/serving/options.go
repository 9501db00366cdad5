package serving

import (
	"fmt"
	"net"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/pkg/program/settings"
)

// Options are the settings of what is served.
type Options struct {
	healthAddress string
	// profilingAddress is empty for none: profiles tell whoever may ask.
	profilingAddress string
	metrics          metricsOptions
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{healthAddress: ":8081", metrics: defaultMetricsOptions()}
}

// Declare adds the settings to the set.
func (o *Options) Declare(set *settings.Set) {
	set.Group("Health and profiles", func(fs *pflag.FlagSet) {
		fs.StringVar(&o.healthAddress, "health-bind-address", o.healthAddress, "Address of /healthz and /readyz; 0 for none.")
		fs.StringVar(&o.profilingAddress, "profiling-bind-address", o.profilingAddress, "Address of Go's profiles at /debug/pprof/, on the loopback interface, such as localhost:6060; none by default. Whoever reaches it may read them.")
	},
		settings.Setting{Flag: "health-bind-address", Field: "health.bindAddress"},
		settings.Setting{Flag: "profiling-bind-address", Field: "profiling.bindAddress", Check: o.checkProfiling})
	o.metrics.declare(set)
}

// checkProfiling refuses an address that others than this host, or this pod, reach:
// nobody is asked who they are. What kubectl port-forward reaches is enough.
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

// Validate looks at what several settings come to together.
func (o *Options) Validate() error { return o.metrics.validate() }
