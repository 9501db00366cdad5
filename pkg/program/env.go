package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/pkg/program/identity"
	"kube-queue.dev/kube-queue/pkg/program/lease"
	"kube-queue.dev/kube-queue/pkg/program/serving"
	"kube-queue.dev/kube-queue/pkg/program/settings"
)

// Env is the environment of a running program.
type Env struct {
	// Name is the name of the program.
	Name string
	// Config is the base of all clients. It has the user agent, the write deadline and the shared rate limiter.
	Config *rest.Config
	// Namespace is the namespace of the program's own objects.
	Namespace string
	// Identity is unique to this process.
	Identity string
	// ServerVersion is the version of the API server, for example v1.36.3.
	ServerVersion string

	// Metrics is the registry of the metrics of the program.
	Metrics *metrics.Registry

	features *settings.Features
	health   *serving.Health
	lease    *lease.Lease
}

func newEnv(name string, opts *options) (*Env, error) {
	config, err := loadConfig(opts.kubeconfig)
	if err != nil {
		return nil, err
	}
	// Copies of the config share the limiter. With only a rate, each client would make its own limiter.
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(opts.qps, opts.burst)
	config.UserAgent = identity.UserAgent(name)
	process, err := identity.OfProcess()
	if err != nil {
		return nil, err
	}
	registry := metrics.New(name, identity.Version())
	health := serving.NewHealth(registry.Lead)
	own := lease.New(opts.lease, lease.Candidate{
		Name: name, Namespace: opts.namespace, Identity: process, Config: config, Health: health})
	own.Guard(config)
	config.Wrap(registry.Writes)
	return &Env{
		Name: name, Config: config, Namespace: opts.namespace,
		Identity: process,
		Metrics:  registry,
		features: opts.features,
		health:   health,
		lease:    own,
	}, nil
}

// loadConfig uses the given file, else the service account of the pod, else the kubeconfig that kubectl would use.
func loadConfig(file string) (*rest.Config, error) {
	if file == "" {
		config, err := rest.InClusterConfig()
		if err == nil {
			return config, nil
		}
		if !errors.Is(err, rest.ErrNotInCluster) {
			return nil, fmt.Errorf("loading the service account of the pod: %w", err)
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %q: %w", file, err)
	}
	return config, nil
}

// Enabled reports whether a feature of the program is enabled.
func (e *Env) Enabled(feature featuregate.Feature) bool { return e.features.Gate().Enabled(feature) }

// MarkReady makes /readyz answer ok, and the metrics report this replica as working while it
// leads. Call it once caches have synced, before Lead or in its work.
func (e *Env) MarkReady() { e.health.Synced() }

// BlockReady makes /readyz fail while why returns a reason.
func (e *Env) BlockReady(why func() string) { e.health.Blocks(why) }

// Lead runs work while this replica holds the lease; see Lease.Lead.
func (e *Env) Lead(ctx context.Context, work func(ctx context.Context) error) error {
	return e.lease.Lead(ctx, work)
}

// connect waits until the API server answers, because it may start after this program.
func (e *Env) connect(ctx context.Context) error {
	client, err := discovery.NewDiscoveryClientForConfig(e.Config)
	if err != nil {
		return fmt.Errorf("creating the discovery client for %s: %w", e.Config.Host, err)
	}
	backoff := wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 15 * time.Second}
	return backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		var info version.Info
		body, err := client.RESTClient().Get().AbsPath("/version").Do(ctx).Raw() // ServerVersion has no context
		if err == nil {
			err = json.Unmarshal(body, &info)
		}
		if apierrors.IsUnauthorized(err) {
			return false, fmt.Errorf("the API server %s rejects the credentials; check the kubeconfig or the service account: %w", e.Config.Host, err)
		}
		if err != nil {
			klog.FromContext(ctx).Error(err, "The API server does not answer yet, retrying", "host", e.Config.Host)
			return false, nil
		}
		e.ServerVersion = info.GitVersion
		return true, nil
	})
}
