package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/perf/loadgen"
	"kube-queue.dev/kube-queue/test/perf/pace"
	"kube-queue.dev/kube-queue/test/perf/report"
	"kube-queue.dev/kube-queue/test/perf/rig"
	"kube-queue.dev/kube-queue/test/perf/scenario"
)

// session is one run of a command on its rig.
type session struct {
	*rig.Rig
	// pprof is the folder for profiles, or empty.
	pprof    string
	progress io.Writer
	figures  *report.Report
}

// measure starts a rig for a part of a measurement, and always stops it. It keeps the logs of a failure.
func (s *session) measure(ctx context.Context, p part) (err error) {
	p.options.Log = s.progress
	if s.Rig, err = rig.Start(ctx, p.options); err != nil {
		return err
	}
	interrupted := ctx
	defer func() {
		keep := err != nil && interrupted.Err() == nil
		if keep {
			s.say("logs: %s", s.Cluster.Data)
		}
		err = errors.Join(err, s.Close(keep))
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.Exited = cancel
	if err = p.run(ctx, s); err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
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
func apiOnly() rig.Options { return rig.Options{Options: clustertest.Options{OnlyAPI: true}} }

// profileAtMost is the maximum duration of a profile.
const profileAtMost = 20 * time.Second

// profile starts profiles of the API server and the programs after a delay, if profiles are wanted. The channel receives
// the result.
func (s *session) profile(ctx context.Context, moment string, later, during time.Duration) <-chan error {
	done := make(chan error, 1)
	if s.pprof == "" {
		close(done)
		return done
	}
	go func() {
		err := pace.Pass(ctx, later)
		if err == nil {
			err = s.Profile(ctx, s.pprof, moment, min(during, profileAtMost))
		}
		done <- err
	}()
	return done
}

// prepare creates the namespaces and the tree of a scenario, and returns a run whose units are created as
// job-extensions does it.
func (s *session) prepare(ctx context.Context, units *scenario.Scenario) (*loadgen.Run, error) {
	if err := errors.Join(s.MakeNamespaces(ctx, units.Namespaces()...), s.ApplyTree(ctx, units.Tree())); err != nil {
		return nil, err
	}
	config, _, err := s.Cluster.ServiceAccountConfig(ctx, rig.Extensions)
	if err != nil {
		return nil, err
	}
	return loadgen.New(config, units)
}

// createUnit creates a unit of an object, which has the name of the object.
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
		for pace.Pass(ctx, 5*time.Second) == nil {
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
	stop := s.every(func() string { return fmt.Sprintf("%s: %d of %d", what, done.Load(), count) })
	defer stop()
	return pace.Each(ctx, rig.InFlight, count, func(ctx context.Context, i int) error {
		if err := do(ctx, i); err != nil {
			return fmt.Errorf("%s, number %d: %w", what, i, err)
		}
		done.Add(1)
		return nil
	})
}
