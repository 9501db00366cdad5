package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
)

// Program is one program.
type Program struct {
	// Name of the program, of its lease and in its user agent.
	Name string
	// Flags adds the program's own flags. It may be nil.
	Flags func(*pflag.FlagSet)
	// Validate looks at the program's own settings once flags are read; what is
	// wrong with them ends the program with status 2. It may be nil.
	Validate func() error
	// InForce returns key and value pairs for the start log: what the settings
	// come to. It may be nil.
	InForce func() []any
	// Run does the work until ctx is done. An error ends the program with status 1.
	Run func(ctx context.Context, env *Env) error
}

// Exit statuses.
const (
	exitClean = 0
	exitError = 1
	exitUsage = 2
)

// Main runs the program with the arguments of the process and ends the process.
func Main(p Program) {
	os.Exit(run(p, os.Args[1:], os.Stdout, os.Stderr))
}

func run(p Program, args []string, stdout, stderr io.Writer) int {
	// First, for it sets back what the flags are about to set.
	logs.InitLogs()
	defer logs.FlushLogs()
	opts := defaultOptions()
	fs := newFlagSet(p.Name)
	opts.addFlags(fs)
	if p.Flags != nil {
		p.Flags(fs)
	}
	switch err := prepare(p, opts, fs, args); {
	case errors.Is(err, pflag.ErrHelp):
		printFlags(stdout, fs, p.Name)
		return exitClean
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		var usage usageError
		if errors.As(err, &usage) && usage.withFlags {
			printFlags(stderr, fs, p.Name)
		}
		return exitUsage
	case opts.version:
		fmt.Fprintf(stdout, "%s %s\n", p.Name, Version())
		return exitClean
	}
	ctx, stop := signalContext(context.Background())
	defer stop()
	ctx = klog.NewContext(ctx, klog.Background().WithName(p.Name))
	if err := start(ctx, p, opts, fs); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "The program ends")
		return exitError
	}
	klog.FromContext(ctx).Info("The program ends as asked")
	return exitClean
}

// prepare reads and checks all settings.
func prepare(p Program, opts *options, fs *pflag.FlagSet, args []string) error {
	if err := parse(fs, args); err != nil {
		return err
	}
	if opts.version {
		return nil
	}
	if err := opts.validate(); err != nil {
		return err
	}
	if p.Validate != nil {
		if err := p.Validate(); err != nil {
			return err
		}
	}
	return logsapi.ValidateAndApply(opts.logging, nil)
}

// start connects, serves health and hands over to the program.
func start(ctx context.Context, p Program, opts *options, fs *pflag.FlagSet) error {
	env, err := newEnv(p.Name, opts)
	if err != nil {
		return err
	}
	stopHealth, err := serveHTTP(ctx, "health-bind-address", opts.healthAddress, "health checks", env.health)
	if err != nil {
		return err
	}
	defer stopHealth()
	stopProfiling, err := serveHTTP(ctx, "profiling-bind-address", opts.profilingAddress, "profiles", profiles())
	if err != nil {
		return err
	}
	defer stopProfiling()
	if err := env.connect(ctx); err != nil {
		return err
	}
	inForceValues := []any{"version", Version(), "apiServerVersion", env.ServerVersion, "namespace", env.Namespace,
		"leaderElect", opts.leaderElect, "flags", inForce(fs)}
	if p.InForce != nil {
		inForceValues = append(inForceValues, p.InForce()...)
	}
	klog.FromContext(ctx).Info("The program starts", inForceValues...)
	if err := env.awaitUnits(ctx); err != nil {
		return err
	}
	return p.Run(ctx, env)
}

// signalContext is done on the first SIGINT or SIGTERM. The second one ends the
// process: whoever sends it no longer wants to wait.
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
