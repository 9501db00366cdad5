// Command job-extensions creates a QueueUnit for each job and releases the job when its unit
// is admitted.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/cmd/job-extensions/options"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/reconciler"
	"kube-queue.dev/kube-queue/extensions/hold/admission"
	"kube-queue.dev/kube-queue/extensions/provisioning/controller"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/pkg/program"
	"kube-queue.dev/kube-queue/pkg/program/webhook"
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
	if opts.CheckUninstall {
		return checkUninstall(ctx, client.CoreV1())
	}
	record := metrics.NewExtensions(env.Metrics)
	works := []program.Work{}
	if opts.Webhook.On() {
		server, err := serveWebhooks(ctx, env, opts, client)
		if err != nil {
			return err
		}
		defer server.Stop(ctx)
		works = append(works, server.Work)
	}
	writer := events.NewWriter(client.CoreV1(), events.Source{Component: options.Name, Instance: env.Identity}, clock.RealClock{}, env.Metrics.EventDropped)
	jobs, err := reconciler.New(reconciler.Options{
		Config: env.Config, Adapters: opts.Kinds.Enabled, Annotated: opts.Kinds.Annotated, Others: opts.Kinds.Others, Pods: opts.Kinds.Pods, Webhook: opts.Webhook.On(), Namespace: env.Namespace, Workers: opts.Workers, Rules: opts.Rules(), Events: writer, Clock: clock.RealClock{},
		Metrics: record,
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
	works = append(works, jobs.Work, checks.Work)
	return env.Lead(ctx, func(ctx context.Context) error {
		return writer.While(ctx, func(ctx context.Context) error { return program.Together(ctx, works...) })
	})
}

// checkUninstall returns an error if pods wait at the gate.
func checkUninstall(ctx context.Context, client corev1client.PodsGetter) error {
	waiting, first := 0, ""
	options := metav1.ListOptions{LabelSelector: wellknown.GatedLabel + "=true", Limit: 1000}
	for {
		page, err := client.Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing the pods that have had the gate: %w", err)
		}
		for i := range page.Items {
			if pod := &page.Items[i]; framework.IsGated(pod) {
				waiting++
				first = cmp.Or(first, pod.Namespace+"/"+pod.Name)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	if waiting == 0 {
		return nil
	}
	return fmt.Errorf("%d pods wait at the scheduling gate of kube-queue, such as %s, and nothing would remove it;"+
		" delete them, remove their gates as docs/operations/install.md#uninstall shows, or run helm uninstall with --no-hooks", waiting, first)
}

// serveWebhooks serves the webhooks. Every replica does, whether it leads or not, and from the start: an answer needs
// no cache.
func serveWebhooks(ctx context.Context, env *program.Env, opts *options.Options, client kubernetes.Interface) (*webhook.Server, error) {
	server, err := webhook.Start(ctx, webhook.Options{
		Settings: opts.Webhook, Client: client, Namespace: env.Namespace, Service: admission.Service,
		Mutating: []string{admission.HoldConfiguration}, Validating: []string{admission.TreeConfiguration}, Clock: clock.RealClock{},
		Largest: admission.Largest, Handler: admission.Handler(registry.All(), clock.RealClock{}, env.Metrics.Webhook), Expires: env.Metrics.WebhookCertificateExpires,
	})
	if err != nil {
		return nil, err
	}
	env.BlockReady(server.NotReady)
	return server, nil
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
