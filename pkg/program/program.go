package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/pkg/program/identity"
	"kube-queue.dev/kube-queue/pkg/program/logs"
	"kube-queue.dev/kube-queue/pkg/program/serving"
	"kube-queue.dev/kube-queue/pkg/program/settings"
	"kube-queue.dev/kube-queue/pkg/program/unitcrd"
	"kube-queue.dev/kube-queue/pkg/program/usage"
)

// Program describes a program.
type Program struct {
	// Name is the name of the program, of its lease, and in its user agent.
	Name string
	// Kind is the kind of the configuration file.
	Kind string
	// Environ is the environment of the process, as returned by os.Environ.
	Environ []string
	// Settings adds the program's own settings. It can be nil.
	Settings func(*settings.Set)
	// Anonymous is whether the program has no rights of its own: no kubeconfig, no lease and no metrics. Its Env has
	// only a name and MarkReady. It has no profiles, because its memory holds tokens of its callers.
	Anonymous bool
	// Features are the program's own feature gates.
	Features map[featuregate.Feature]featuregate.FeatureSpec
	// Validate checks the program's own settings once all of them are read. An error ends the program with status 2.
	// It can be nil.
	Validate func() error
	// LeaseLabels returns the labels that the lease has while the program leads. It can be nil.
	LeaseLabels func() map[string]string
	// InForce returns key and value pairs for the log line at start. It can be nil.
	InForce func() []any
	// NeedsNoUnits reports whether Run is called even if the API server does not serve QueueUnits. It can be nil.
	NeedsNoUnits func() bool
	// Run does the work until ctx is done. An error ends the program with status 1.
	Run func(ctx context.Context, env *Env) error
}

// Exit statuses.
const (
	exitClean = 0
	exitError = 1
	exitUsage = 2
)

// Main runs the program with the arguments of the process and exits.
func Main(p Program) {
	os.Exit(run(p, os.Args[1:], os.Stdout, os.Stderr))
}

// Settings returns all settings of a program.
func Settings(p Program) (*settings.Set, error) {
	set, _, err := declare(p)
	return set, err
}

func declare(p Program) (*settings.Set, *options, error) {
	var err error
	opts := defaultOptions()
	if opts.features, err = settings.NewFeatures(p.Features); err != nil {
		return nil, nil, err
	}
	set := settings.New(p.Name, p.Kind)
	if p.Settings != nil {
		p.Settings(set)
	}
	opts.declare(set, p.Anonymous)
	return set, opts, set.Fault()
}

func run(p Program, args []string, stdout, stderr io.Writer) int {
	// Init must come first, because it resets what the flags set.
	defer logs.Init()()
	set, opts, err := declare(p)
	if err == nil {
		err = prepare(p, opts, set, args)
	}
	switch {
	case errors.Is(err, pflag.ErrHelp):
		set.Help(stdout)
		return exitClean
	case err != nil:
		if usage.IsUnknownFlag(err) {
			usage.Print(stderr, p.Name, err, set.Flags())
			if usage.MeantFlag(err, set.Flags()) == "" && !p.Anonymous {
				fmt.Fprintln(stderr, "For the flags of ack-kube-queue, see docs/migration/from-ack-kube-queue.md.")
			}
		} else {
			fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		}
		return exitUsage
	case set.Version():
		fmt.Fprintf(stdout, "%s %s\n", p.Name, identity.Version())
		return exitClean
	}
	ctx, stop := signalContext(context.Background())
	defer stop()
	ctx = klog.NewContext(ctx, klog.Background().WithName(p.Name))
	logSettings(ctx, set)
	if err := start(ctx, p, opts); err != nil && (ctx.Err() == nil || !isStop(err)) {
		klog.FromContext(ctx).Error(err, "The program stops because of an error")
		return exitError
	}
	klog.FromContext(ctx).Info("The program stops on request")
	return exitClean
}

// isStop reports whether an error means only that the program was stopped. A joined error does only if all its parts
// do.
func isStop(err error) bool {
	switch err := err.(type) {
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(err.Unwrap(), func(one error) bool { return !isStop(one) })
	case interface{ Unwrap() error }:
		return isStop(err.Unwrap())
	}
	return errors.Is(err, context.Canceled)
}

// prepare reads and checks all settings.
func prepare(p Program, opts *options, set *settings.Set, args []string) error {
	if err := set.Read(args, p.Environ); err != nil || set.Version() {
		return err
	}
	if err := opts.features.Apply(); err != nil {
		return err
	}
	if err := opts.validate(); err != nil {
		return err
	}
	if p.Validate != nil {
		if err := p.Validate(); err != nil {
			return err
		}
	}
	return opts.logs.Apply(opts.features.Gate())
}

// logSettings logs the settings in force. They contain no secrets: a kubeconfig is a path.
func logSettings(ctx context.Context, set *settings.Set) {
	logger := klog.FromContext(ctx)
	values, from := set.InForce()
	logger.Info("Settings in force", "version", identity.Version(), "file", set.File(), "given", from, "settings", values)
	for _, variable := range set.Ineffective() {
		logger.Info("An environment variable has no effect; remove or rename it", "variable", variable)
	}
}

// start serves health checks and metrics, connects to the API server and runs the program.
func start(ctx context.Context, p Program, opts *options) error {
	if p.Anonymous {
		return startAnonymous(ctx, p, opts)
	}
	env, err := newEnv(p.Name, opts)
	if err != nil {
		return err
	}
	if p.LeaseLabels != nil {
		env.lease.Labels = p.LeaseLabels()
	}
	stopHealth, err := opts.serving.Health(ctx, env.health)
	if err != nil {
		return err
	}
	defer stopHealth()
	stopProfiling, err := opts.serving.Profiles(ctx)
	if err != nil {
		return err
	}
	defer stopProfiling()
	stopMetrics, err := opts.serving.Metrics(ctx, serving.Metrics{
		Registry: env.Metrics, Name: env.Name, Namespace: env.Namespace, Config: env.Config})
	if err != nil {
		return err
	}
	defer stopMetrics()
	if err := env.connect(ctx); err != nil {
		return err
	}
	inForce := []any{"version", identity.Version(), "apiServerVersion", env.ServerVersion, "namespace", env.Namespace,
		"leaderElect", opts.lease.LeaderElect()}
	if p.InForce != nil {
		inForce = append(inForce, p.InForce()...)
	}
	klog.FromContext(ctx).Info("The program starts", inForce...)
	if p.NeedsNoUnits == nil || !p.NeedsNoUnits() {
		if err := unitcrd.Await(ctx, env.Config); err != nil {
			return err
		}
	}
	return p.Run(ctx, env)
}

// startAnonymous serves health checks and runs the program.
func startAnonymous(ctx context.Context, p Program, opts *options) error {
	env := &Env{Name: p.Name, health: serving.NewHealth(func(bool) {})}
	stop, err := opts.serving.Health(ctx, env.health)
	if err != nil {
		return err
	}
	defer stop()
	klog.FromContext(ctx).Info("The program starts", "version", identity.Version())
	return p.Run(ctx, env)
}

// signalContext returns a context that is done on the first SIGINT or SIGTERM. The second
// signal exits the process immediately.
func signalContext(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
			return
		}
		if _, again := <-signals; again {
			os.Exit(exitError)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}
