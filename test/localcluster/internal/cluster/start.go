package cluster

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	// startDeadline is the timeout of a start. An idle machine needs a tenth of it.
	startDeadline = 4 * time.Minute
	// startAttempts is the maximum number of starts if ports are in use.
	startAttempts = 3
)

// start starts all parts. If the port of a part is in use, it stops all parts and starts them again
// with other ports.
func (s *Supervisor) start(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := s.startOnce(ctx)
		part, lost := lostPort(err)
		if !lost || ctx.Err() != nil || attempt == startAttempts {
			return err
		}
		s.say("%s lost its port to another program: trying other ports", part)
		s.stopAll()
		s.mu.Lock()
		s.parts = nil
		s.mu.Unlock()
		if err := s.folder.remove("etcd", "credentials", "tmp", "logs", auditFile, kubeconfigFile); err != nil {
			return err
		}
	}
}

func (s *Supervisor) startOnce(ctx context.Context) error {
	ctx, cancel := readyWithin(ctx, startDeadline)
	defer cancel()
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	s.mu.Lock()
	s.abort = abort
	s.mu.Unlock()
	if err := os.MkdirAll(s.folder.Path("tmp"), 0o700); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	setup, err := newSetup(s.folder, s.config, s.pickPorts)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.setup = setup
	s.ready = setup.ready()
	s.mu.Unlock()

	began := time.Now()
	s.setDetail("starting etcd")
	if err := s.run(ctx, setup.etcd()); err != nil {
		return err
	}
	s.setDetail("starting kube-apiserver")
	apiServer, err := setup.apiServer()
	if err != nil {
		return err
	}
	if err := s.run(ctx, apiServer); err != nil {
		return err
	}
	if s.config.OnlyAPI {
		s.setDetail("ready after %v, with nothing but the API server", since(began))
		return nil
	}
	s.setDetail("kube-apiserver ready after %v; starting controllers, scheduler and kwok, making %d nodes", since(began), s.config.Nodes)
	if err := s.together(ctx, setup, began); err != nil {
		return err
	}
	s.setDetail("ready after %v", since(began))
	return nil
}

// together starts all parts that need only the API server, concurrently. began is the time of the
// start.
func (s *Supervisor) together(ctx context.Context, setup *setup, began time.Time) error {
	kwok, err := setup.kwok()
	if err != nil {
		return err
	}
	steps := []step{
		func(ctx context.Context) error {
			if err := s.run(ctx, setup.controllerManager()); err != nil {
				return err
			}
			return waitFor(ctx, "namespace default", setup.defaultAccount)
		},
		func(ctx context.Context) error { return s.run(ctx, setup.scheduler()) },
		func(ctx context.Context) error { return s.run(ctx, kwok) },
		func(ctx context.Context) error {
			if err := setup.createNodes(ctx); err != nil {
				return err
			}
			return waitFor(ctx, "nodes", setup.nodesReady)
		},
	}
	for _, name := range s.config.allOperators() {
		steps = append(steps, func(ctx context.Context) error {
			parts, err := setup.startOperator(ctx, name)
			if err != nil {
				return fmt.Errorf("operator %s: %w", name, err)
			}
			for _, part := range parts {
				if err := s.run(ctx, part); err != nil {
					return err
				}
			}
			s.setDetail("%s ready after %v", name, since(began))
			return nil
		})
	}

	return concurrently(ctx, steps)
}

// step is a part of a start.
type step func(context.Context) error

// concurrently runs all steps. The first failure ends the other steps and is returned.
func concurrently(ctx context.Context, steps []step) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for _, step := range steps {
		group.Go(func() {
			if err := step(ctx); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// readyWithin limits how long a start may take.
func readyWithin(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("not ready after %v: %w", limit, context.DeadlineExceeded))
}

func since(began time.Time) time.Duration {
	return time.Since(began).Truncate(10 * time.Millisecond)
}
