package program

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	// The json format registers itself with the logging options.
	_ "k8s.io/component-base/logs/json/register"
)

// options are the flags that every program has.
type options struct {
	kubeconfig    string
	qps           float32
	burst         int
	healthAddress string
	// profilingAddress is empty for none: profiles tell whoever may ask.
	profilingAddress string
	leaderElect      bool
	namespace        string
	version          bool
	metrics          metricsOptions
	logging          *logsapi.LoggingConfiguration
}

func defaultOptions() *options {
	return &options{
		qps:           500,
		burst:         1000,
		healthAddress: ":8081",
		leaderElect:   true,
		namespace:     "kube-queue",
		metrics:       defaultMetricsOptions(),
		logging:       logsapi.NewLoggingConfiguration(),
	}
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", o.kubeconfig, "Path of a kubeconfig file. Unset: the service account when running in a pod, else the usual places of a kubeconfig.")
	fs.Float32Var(&o.qps, "kube-api-qps", o.qps, "Requests per second to the API server that are always allowed.")
	fs.IntVar(&o.burst, "kube-api-burst", o.burst, "Requests to the API server that are allowed at once.")
	fs.StringVar(&o.healthAddress, "health-bind-address", o.healthAddress, "Address of /healthz and /readyz; 0 for none.")
	fs.StringVar(&o.profilingAddress, "profiling-bind-address", o.profilingAddress, "Address of Go's profiles at /debug/pprof/, such as localhost:6060; none by default. Whoever reaches it may read them.")
	fs.BoolVar(&o.leaderElect, "leader-elect", o.leaderElect, "Work only while holding the lease, so that more than one replica may run.")
	fs.StringVar(&o.namespace, "namespace", o.namespace, "Namespace of the lease and of the program's own objects.")
	fs.BoolVar(&o.version, "version", o.version, "Print the version and exit.")
	o.metrics.addFlags(fs)
	logsapi.AddFlags(o.logging, fs)
}

func (o *options) validate() error {
	switch {
	case o.qps <= 0 || math.IsNaN(float64(o.qps)) || math.IsInf(float64(o.qps), 0):
		return fmt.Errorf("--kube-api-qps must be a number above 0, not %v", o.qps)
	case o.burst <= 0:
		return fmt.Errorf("--kube-api-burst must be above 0, not %d", o.burst)
	case o.namespace == "":
		return errors.New("--namespace must not be empty")
	}
	return o.metrics.validate()
}

// A usageError is the fault of the command line.
type usageError struct {
	err       error
	withFlags bool
}

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// parse reads the command line into the flags.
func parse(fs *pflag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		var unknown *pflag.NotExistError
		return usageError{err: err, withFlags: errors.As(err, &unknown)}
	}
	if fs.NArg() > 0 {
		return usageError{err: fmt.Errorf("unexpected argument %q: only flags are understood", fs.Arg(0))}
	}
	return nil
}

// newFlagSet has no output and no exit of its own: Main decides on both.
func newFlagSet(name string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	return fs
}

func printFlags(out io.Writer, fs *pflag.FlagSet, name string) {
	fmt.Fprintf(out, "Flags of %s:\n%s", name, fs.FlagUsagesWrapped(100))
}

// inForce lists the flags that differ from their defaults, for the start log.
func inForce(fs *pflag.FlagSet) string {
	var set []string
	fs.Visit(func(f *pflag.Flag) {
		set = append(set, "--"+f.Name+"="+f.Value.String())
	})
	return strings.Join(set, " ")
}
