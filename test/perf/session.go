package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync/atomic"
	"time"

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

// measure starts a rig for a measurement, and always stops it.
func (s *session) measure(ctx context.Context, options rig.Options, keep bool, run func(context.Context, *session) error) (err error) {
	if s.Rig, err = rig.Start(ctx, options); err != nil {
		return err
	}
	defer func() {
		end := s.Close
		if keep || err != nil && ctx.Err() == nil {
			s.say("logs: %s", s.Cluster.Data)
			end = s.CloseAndKeep
		}
		err = errors.Join(err, end())
	}()
	s.figures.Version = s.Rig.Version
	stop, err := s.profileTool()
	if err != nil {
		return err
	}
	return errors.Join(run(ctx, s), stop())
}

// profileTool profiles this tool until the returned function is called.
func (s *session) profileTool() (stop func() error, err error) {
	if s.pprof == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(s.pprof, 0o755); err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(s.pprof, rig.Tool+".cpu.pprof"))
	if err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, pprof.StartCPUProfile(file)
}

// profileAtMost is the maximum duration of a profile of a program.
const profileAtMost = 20 * time.Second

// profile starts profiles of the API server and of programs after a delay, if profiles are wanted. The
// channel receives the result.
func (s *session) profile(ctx context.Context, later, during time.Duration, suffix string, programs ...*rig.Program) <-chan error {
	done := make(chan error, 1)
	if s.pprof == "" {
		close(done)
		return done
	}
	go func() {
		err := pace.Pass(ctx, later)
		if err == nil {
			err = s.CPUProfiles(ctx, min(during, profileAtMost), s.pprof, suffix, programs...)
		}
		done <- err
	}()
	return done
}

// apiOnly are the options of a cluster without controllers, scheduler and nodes.
func apiOnly() rig.Options { return rig.Options{Options: clustertest.Options{OnlyAPI: true}} }

// prepare creates the namespaces and the tree of a scenario, and returns a client that creates units as
// job-extensions.
func (s *session) prepare(ctx context.Context, units *scenario.Scenario) (*loadgen.Client, error) {
	tree, err := units.Tree()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.MakeNamespaces(ctx, units.Namespaces()), s.ApplyTree(ctx, tree)); err != nil {
		return nil, err
	}
	config, _, err := s.Cluster.ServiceAccountConfig(ctx, rig.Extensions)
	if err != nil {
		return nil, err
	}
	return loadgen.NewClient(config)
}

func (s *session) say(format string, args ...any) { fmt.Fprintf(s.progress, format+"\n", args...) }

// every reports the progress periodically until the returned function is called.
func (s *session) every(progress func() string) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(5 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				s.say("%s", progress())
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// inFlight is the number of concurrent requests.
const inFlight = 32

// each calls do for each index, several at a time, and reports the progress.
func (s *session) each(ctx context.Context, what string, count int, do func(context.Context, int) error) error {
	var done atomic.Int64
	stop := s.every(func() string { return fmt.Sprintf("%s: %d of %d", what, done.Load(), count) })
	defer stop()
	return pace.Each(ctx, count, inFlight, func(ctx context.Context, i int) error {
		if err := do(ctx, i); err != nil {
			return fmt.Errorf("%s, number %d: %w", what, i, err)
		}
		done.Add(1)
		return nil
	})
}

// until waits until a condition holds, which is checked once a second. late is the error if it does not
// in time.
func until(ctx context.Context, timeout time.Duration, late error, holds func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	return pace.Until(ctx, time.Second, holds)
}
