// Command kube-queue-controller decides which waiting QueueUnits get quota.
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/cmd/kube-queue-controller/options"
	"kube-queue.dev/kube-queue/pkg/controller"
	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/pkg/generated/clientset/versioned"
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
	client, err := versioned.NewForConfig(env.Config)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		return err
	}
	writer := events.NewWriter(kube.CoreV1(), events.Source{Component: options.Name, Instance: env.Identity}, clock.RealClock{}, env.Metrics.EventDropped)
	counted := metrics.NewController(env.Metrics)
	decide := func(ctx context.Context) error {
		return controller.Run(ctx, controller.Config{
			Client:          client,
			Source:          opts.Source(),
			Rest:            env.Config,
			Clock:           clock.RealClock{},
			Namespace:       env.Namespace,
			Policy:          opts.Policy,
			Backoff:         opts.Backoff,
			Workers:         opts.Workers,
			CheckInvariants: opts.CheckInvariants,
			AuditInvariants: env.Enabled(options.InvariantAudit),
			Emit: func(about *unstructured.Unstructured, kind string, reason wellknown.EventReason, message string) {
				writer.Write(events.Event{Object: reference(about), Type: kind, Reason: reason, Message: message,
					Key: controller.EventKey(about, reason, message)})
			},
			Metrics: counted,
			Synced:  env.MarkReady,
		})
	}
	return env.Lead(ctx, func(ctx context.Context) error { return writer.While(ctx, decide) })
}

func reference(about *unstructured.Unstructured) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: about.GetAPIVersion(), Kind: about.GetKind(), Namespace: about.GetNamespace(),
		Name: about.GetName(), UID: about.GetUID(), ResourceVersion: about.GetResourceVersion()}
}
