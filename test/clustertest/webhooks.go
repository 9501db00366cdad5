package clustertest

import (
	"cmp"
	"context"
	"os"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/extensions/hold/admission"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/pkg/program/webhook"
	"kube-queue.dev/kube-queue/test/freeport"
)

// What holds new jobs.
const (
	HoldByPolicy  = "policy"
	HoldByWebhook = "webhook"
)

// WebhookPort is the port of the Service in front of the webhooks, for Route.
const WebhookPort = Namespace + "/" + admission.Service + ":443"

// holdBy returns what holds jobs in the cluster: the value of the options or of the environment variable
// KUBE_QUEUE_HOLD_BY, or else policies if the API server serves them.
func (c *Cluster) holdBy(ctx context.Context) (string, error) {
	if wanted := cmp.Or(c.wantedHold, os.Getenv("KUBE_QUEUE_HOLD_BY")); wanted != "" {
		return wanted, nil
	}
	served, err := c.serves(admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies"))
	if err != nil {
		return "", err
	}
	if served {
		return HoldByPolicy, nil
	}
	return HoldByWebhook, nil
}

// ServeWebhooks serves the webhooks of job-extensions in this process, with the rights of job-extensions, until stop
// or the end of the cluster. As with policies, jobs are then held even while the programs are not running.
func (c *Cluster) ServeWebhooks(ctx context.Context) (stop func() error, err error) {
	config, _, err := c.ServiceAccountConfig(ctx, "job-extensions")
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	address, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	// There is no need to drain: the program stops at once.
	server, err := webhook.Start(context.WithoutCancel(ctx), webhook.Options{
		Settings: webhook.Settings{Address: address, Manage: true}, Client: client, Namespace: Namespace, Service: admission.Service,
		Mutating: []string{admission.HoldConfiguration}, Validating: []string{admission.TreeConfiguration}, Clock: clock.RealClock{}, Expires: func(float64) {},
		Largest: admission.Largest, Handler: admission.Handler(registry.All(), clock.RealClock{}, func(string, string, time.Duration) {}),
	})
	if err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Work(running) }()
	if err := c.Route(ctx, WebhookPort, address); err != nil {
		cancel()
		return nil, err
	}
	return func() error {
		cancel()
		err := <-ended
		server.Stop(context.WithoutCancel(ctx))
		return err
	}, nil
}
