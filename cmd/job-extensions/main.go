// Command job-extensions turns jobs into QueueUnits and releases them when their
// units are admitted.
package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/pkg/program"
)

const name = "job-extensions"

type options struct {
	enabled  string
	workers  int
	adapters []framework.Adapter
}

func main() {
	opts := &options{enabled: registry.Default, workers: 8}
	program.Main(program.Program{Name: name, Flags: opts.addFlags, Validate: opts.validate, InForce: opts.inForce, Run: opts.run})
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.enabled, "enabled-extensions", o.enabled,
		"Kinds of job that are queued, parted by commas; empty for none. Known are "+strings.Join(registry.Names(), ", ")+".")
	fs.IntVar(&o.workers, "workers", o.workers, "Jobs of one kind that are worked on at the same time.")
}

func (o *options) validate() error {
	adapters, err := registry.Parse(o.enabled)
	if err != nil {
		return fmt.Errorf("--enabled-extensions: %w", err)
	}
	if o.workers < 1 {
		return fmt.Errorf("--workers must be above 0, not %d", o.workers)
	}
	o.adapters = adapters
	return nil
}

func (o *options) inForce() []any {
	names := []string{}
	for _, adapter := range o.adapters {
		names = append(names, adapter.Kind().Name)
	}
	return []any{"enabledExtensions", names, "workers", o.workers}
}

func (o *options) run(ctx context.Context, env *program.Env) error {
	client, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		return fmt.Errorf("making a client for events: %w", err)
	}
	writer := events.NewWriter(client.CoreV1(), events.Source{Component: name, Instance: env.Identity}, clock.RealClock{})
	jobs, err := framework.New(framework.Options{
		Config: env.Config, Adapters: o.adapters, Workers: o.workers, Events: writer, Clock: clock.RealClock{},
		Metrics: metrics.NewExtensions(env.Metrics),
	})
	if err != nil {
		return err
	}
	if err := jobs.Start(ctx); err != nil {
		return fmt.Errorf("filling the caches: %w", err)
	}
	env.MarkReady()
	return env.Lead(ctx, func(ctx context.Context) error {
		return work(ctx, jobs, writer)
	})
}

// work ends the writing of events only after the last job was worked on.
func work(ctx context.Context, jobs *framework.Framework, writer *events.Writer) error {
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { writer.Run(writing) })
	err := jobs.Work(ctx)
	stop()
	running.Wait()
	return err
}
