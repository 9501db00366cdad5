// Command kube-queue-controller decides which waiting QueueUnits get quota.
package main

import (
	"context"
	"fmt"
	"os"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/cmd/kube-queue-controller/options"
	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/pkg/controller"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/controller/reviews"
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
	client, err := clientset.NewForConfig(env.Config)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		return err
	}
	writer := events.NewWriter(kube.CoreV1(), events.Source{Component: options.Name, Instance: env.Identity}, clock.RealClock{}, env.Metrics.EventDropped)
	counted := metrics.NewController(env.Metrics)
	views, estimates := controller.NewViews(clock.RealClock{}), controller.NewEstimates(clock.RealClock{}, counted.Estimated)
	answer := func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}
	if opts.Webhook.On() {
		genuine, keep := func([]byte) bool { return true }, answer // the server requires a certificate of the API server
		if opts.Webhook.ClientCA == "" {
			proof, err := reviews.NewProof(kube, env.Namespace, clock.RealClock{})
			if err != nil {
				return err
			}
			go proof.Watch(ctx)
			genuine, keep = proof.Proves, proof.Keep
		}
		server, err := serveReviews(ctx, env, opts, kube, views, estimates, genuine)
		if err != nil {
			return err
		}
		defer server.Stop(ctx)
		answer = func(ctx context.Context) error { return program.Together(ctx, server.Work, keep) }
	}
	decide := func(ctx context.Context) error {
		return controller.Run(ctx, controller.Config{
			Client:    client,
			Source:    opts.Source(),
			Rest:      env.Config,
			Clock:     clock.RealClock{},
			Namespace: env.Namespace,
			Policy:    opts.Policy,
			Backoff:   opts.Backoff,
			Workers:   opts.Workers,

			UnrenewedUnitTimeout: opts.UnrenewedUnitTimeout,
			PublishInterval:      opts.StatusInterval,
			CheckInvariants:      opts.CheckInvariants,
			AuditInvariants:      env.Enabled(options.InvariantAudit),
			Emit: func(n backend.Notice) {
				writer.Write(events.Event{Object: reference(n.About), Type: n.Type, Reason: n.Reason, Message: n.Message, Key: n.EventKey()})
			},
			Metrics: counted,
			Views:   views,
			Synced:  env.MarkReady,

			Estimates: estimates,
		})
	}
	return env.Lead(ctx, func(ctx context.Context) error {
		return writer.While(ctx, func(ctx context.Context) error { return program.Together(ctx, decide, answer) })
	})
}

// serveReviews serves the webhook that answers reviews. Only the leader can answer, so its Service leads only to the
// leader.
func serveReviews(ctx context.Context, env *program.Env, opts *options.Options, client kubernetes.Interface, views *controller.Views, estimates *controller.Estimates, genuine func([]byte) bool) (*webhook.Server, error) {
	// A separate rate limit keeps questions and the writes of decisions from delaying each other.
	config := rest.CopyConfig(env.Config)
	config.QPS, config.Burst, config.RateLimiter = 100, 200, nil
	authorizer, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the client that asks what callers of reviews may list: %w", err)
	}
	reviewer := authorizer.AuthorizationV1().SubjectAccessReviews()
	return webhook.Start(ctx, webhook.Options{
		Settings: opts.Webhook, Client: client, Namespace: env.Namespace, Service: reviews.Service,
		Mutating: []string{reviews.Configuration}, Clock: clock.RealClock{}, Expires: env.Metrics.WebhookCertificateExpires,
		Largest: reviews.Largest,
		Handler: reviews.Handler(reviews.Options{
			Model: views.Model, Estimate: estimates.Of, Advise: estimates.Advise, Genuine: genuine, Clock: clock.RealClock{}, Record: env.Metrics.Webhook,
			Authorize: reviews.Cached(func(ctx context.Context, review *authorizationv1.SubjectAccessReview) (bool, error) {
				answer, err := reviewer.Create(ctx, review, metav1.CreateOptions{})
				return err == nil && answer.Status.Allowed, err
			}, clock.RealClock{}),
		}),
	})
}

func reference(about *unstructured.Unstructured) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: about.GetAPIVersion(), Kind: about.GetKind(), Namespace: about.GetNamespace(),
		Name: about.GetName(), UID: about.GetUID(), ResourceVersion: about.GetResourceVersion()}
}
