// Command job-extensions creates a QueueUnit for each job and releases the job when its unit
// is admitted.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/cmd/job-extensions/options"
	"kube-queue.dev/kube-queue/extensions/framework/reconciler"
	"kube-queue.dev/kube-queue/extensions/provisioning/controller"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/pkg/program"
)

func main() {
	opts := options.New()
	p := opts.Program()
	p.Environ = os.Environ()
	p.Run = func(ctx context.Context, env *program.Env) error { return run(ctx, env, opts) }
	program.Main(p)
}

func run(ctx context.Context, env *program.Env, opts *options.Options) error {
	client, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		return fmt.Errorf("creating the client for events: %w", err)
	}
	writer := events.NewWriter(client.CoreV1(), events.Source{Component: options.Name, Instance: env.Identity}, clock.RealClock{}, env.Metrics.EventDropped)
	jobs, err := reconciler.New(reconciler.Options{
		Config: env.Config, Adapters: opts.Kinds.Enabled, Annotated: opts.Kinds.Annotated, Others: opts.Kinds.Others, Namespace: env.Namespace, Workers: opts.Workers, Rules: opts.Rules(), Events: writer, Clock: clock.RealClock{},
		Metrics: metrics.NewExtensions(env.Metrics),
	})
	if err != nil {
		return err
	}
	checks, err := newChecks(env, jobs, writer)
	if err != nil {
		return err
	}
	checks.Start(ctx)
	if err := jobs.Start(ctx); err != nil {
		return fmt.Errorf("syncing the caches: %w", err)
	}
	env.MarkReady()
	return env.Lead(ctx, func(ctx context.Context) error {
		return writer.While(ctx, func(ctx context.Context) error { return both(ctx, jobs.Work, checks.Work) })
	})
}

// newChecks returns the controller of the provisioning checks.
func newChecks(env *program.Env, jobs *reconciler.Framework, writer *events.Writer) (*controller.Controller, error) {
	client, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		return nil, fmt.Errorf("creating the client for provisioning checks: %w", err)
	}
	return controller.New(controller.Options{
		Client: client, Units: jobs.Units(), Jobs: jobs, Cluster: jobs.Cluster(), Serves: jobs.Serves, Reporter: jobs.Reporter, Events: writer, Clock: clock.RealClock{},
	})
}

// both runs two loops until ctx is done. If one of them ends before, the other is ended too.
func both(ctx context.Context, first, second func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	result := make(chan error, 1)
	go func() {
		defer cancel()
		result <- second(ctx)
	}()
	err := first(ctx)
	cancel()
	return errors.Join(err, <-result)
}
