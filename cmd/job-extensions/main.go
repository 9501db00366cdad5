// Command job-extensions creates a QueueUnit for each job and releases the job when its unit
// is admitted.
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/cmd/job-extensions/options"
	"kube-queue.dev/kube-queue/extensions/framework/reconciler"
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
		Config: env.Config, Adapters: opts.Adapters, Workers: opts.Workers, Rules: opts.Rules(), Events: writer, Clock: clock.RealClock{},
		Metrics: metrics.NewExtensions(env.Metrics),
	})
	if err != nil {
		return err
	}
	if err := jobs.Start(ctx); err != nil {
		return fmt.Errorf("syncing the caches: %w", err)
	}
	env.MarkReady()
	return env.Lead(ctx, func(ctx context.Context) error { return writer.While(ctx, jobs.Work) })
}
