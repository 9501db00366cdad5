// Command perf measures kube-queue on a local control plane, and the API server alone.
//
//	go run ./test/perf units --scenario=baseline
//
// Every command starts its own cluster, prints its figures as a table and, with --json,
// writes them to a file. Everything runs on one machine, and the figures are only valid for
// that machine without other load.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/perf/loadgen"
	"kube-queue.dev/kube-queue/test/perf/rig"
)

func main() {
	// The first signal stops the run gracefully, the second one immediately.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if command().ExecuteContext(ctx) != nil {
		os.Exit(1)
	}
}

// measurement is what a command does. Some have a method addFlags.
type measurement interface {
	// parts validates the flags.
	parts() ([]part, error)
}

// part is a part of a measurement, with a cluster of its own.
type part struct {
	options rig.Options
	// run adds the figures.
	run func(context.Context, *session) error
}

func command() *cobra.Command {
	root := &cobra.Command{Use: "perf", Short: "measure kube-queue on a local control plane"}
	root.CompletionOptions.DisableDefaultCmd = true
	for _, c := range []struct {
		name, summary, help string
		measurement
	}{
		{"units", "measure kube-queue-controller with QueueUnits of simulated jobs", unitsHelp, &unitsRun{}},
		{"jobs", "measure batch Jobs on a complete cluster: completions, delays and writes, with any queue or none", jobsHelp, &jobsRun{}},
		{"pods", "measure kube-queue-controller in a cluster with many pods", podsHelp, &podsRun{changes: 5_000, idle: time.Minute}},
		{"gate", "measure pods that wait at the scheduling gate, and what the policies cost others", gateHelp, &gateRun{}},
		{"reviews", "measure reviews, the kubectl plugin, and releases meanwhile", reviewsHelp, &reviewsRun{units: 100_000, nodes: 1_000, rounds: 3, during: 20 * time.Second, rate: 20}},
		{"ceiling", "measure the throughput of the API server: the same writes from a minimal client", ceilingHelp, &ceilingRun{units: 9000}},
	} {
		cmd := &cobra.Command{Use: c.name, Short: c.summary, Long: strings.TrimSpace(c.help), Args: cobra.NoArgs}
		cmd.Flags().SortFlags = false
		if c, has := c.measurement.(interface{ addFlags(*pflag.FlagSet) }); has {
			c.addFlags(cmd.Flags())
		}
		pprof := cmd.Flags().String("pprof", "", "`DIR` for profiles of the programs and the API server; profiling takes time")
		file := cmd.Flags().String("json", "", "also write the figures to `FILE` as JSON")
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			parts, err := c.parts()
			if err != nil {
				return err
			}
			cmd.SilenceUsage = true
			return measure(cmd, parts, *pprof, *file)
		}
		root.AddCommand(cmd)
	}
	return root
}

// measure runs all parts and shows their figures.
func measure(cmd *cobra.Command, parts []part, pprof, file string) error {
	line := cmd.Name()
	cmd.Flags().Visit(func(f *pflag.Flag) { line += " --" + f.Name + "=" + f.Value.String() })
	s := &session{progress: cmd.ErrOrStderr(), figures: rig.NewReport(line)}
	s.figures.Version = version(cmd.Context())
	for _, p := range parts {
		p.options.Profiles = pprof
		if err := s.measure(cmd.Context(), p); err != nil {
			return err
		}
	}
	if err := s.figures.Print(cmd.OutOrStdout()); err != nil || file == "" {
		return err
	}
	return s.figures.WriteFile(file)
}

// session is one run of a command on its rig.
type session struct {
	*rig.Rig
	progress io.Writer
	figures  *rig.Report
}

// measure starts a rig for a part of a measurement, and always stops it. It keeps the logs of a failure.
func (s *session) measure(ctx context.Context, p part) (err error) {
	p.options.Log = s.progress
	if s.Rig, err = rig.Start(ctx, p.options); err != nil {
		return err
	}
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.Exited = cancel
	if err = p.run(running, s); err != nil && running.Err() != nil {
		err = context.Cause(running)
	}
	keep := err != nil && ctx.Err() == nil
	if keep {
		s.say("logs: %s", s.Cluster.Data)
	}
	return errors.Join(err, s.Close(keep))
}

// version is that of the programs.
func version(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "devel" // like the Makefile outside of a git repository
	}
	return strings.TrimSpace(string(out))
}

// apiOnly are the options of a cluster without controllers, scheduler and nodes.
func apiOnly(withoutPolicies bool) rig.Options {
	return rig.Options{Options: clustertest.Options{OnlyAPI: true}, WithoutPolicies: withoutPolicies}
}

// prepare creates the namespaces and the tree of a scenario. The run that it returns creates units as job-extensions
// does.
func (s *session) prepare(ctx context.Context, units *loadgen.Scenario) (*loadgen.Run, error) {
	if err := errors.Join(s.MakeNamespaces(ctx, units.Namespaces()...), s.ApplyTree(ctx, units.Tree(0))); err != nil {
		return nil, err
	}
	config, _, err := s.Cluster.ServiceAccountConfig(ctx, rig.Extensions)
	if err != nil {
		return nil, err
	}
	return loadgen.New(config, units)
}

// createUnit creates a unit for an object, with the object's name.
func (s *session) createUnit(ctx context.Context, of v1alpha1.ConsumerReference, requests corev1.ResourceList) (*v1alpha1.QueueUnit, error) {
	return s.Queue.SchedulingV1alpha1().QueueUnits(of.Namespace).Create(ctx, &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Name: of.Name},
		Spec:       v1alpha1.QueueUnitSpec{ConsumerRef: of, Resource: requests},
	}, metav1.CreateOptions{})
}

// during returns what the processes use while do runs.
func (s *session) during(ctx context.Context, do func(context.Context) error) (rig.Use, time.Duration, error) {
	before, err := s.Use()
	if err != nil {
		return nil, 0, err
	}
	began := time.Now()
	if err := do(ctx); err != nil {
		return nil, 0, err
	}
	took := time.Since(began)
	after, err := s.Use()
	return after.Since(before), took, err
}

func (s *session) say(format string, args ...any) { fmt.Fprintf(s.progress, format+"\n", args...) }

// every reports the progress periodically until the returned function is called.
func (s *session) every(progress func() string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for rig.Pass(ctx, 5*time.Second) == nil {
			s.say("%s", progress())
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// each calls do for each index, several at a time, and reports the progress.
func (s *session) each(ctx context.Context, what string, count int, do func(context.Context, int) error) error {
	var done atomic.Int64
	defer s.every(func() string { return fmt.Sprintf("%s: %d of %d", what, done.Load(), count) })()
	return rig.Each(ctx, rig.InFlight, count, func(ctx context.Context, i int) error {
		if err := do(ctx, i); err != nil {
			return fmt.Errorf("%s, number %d: %w", what, i, err)
		}
		done.Add(1)
		return nil
	})
}
