package serving

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/pkg/program/settings"

	// client-go counts its requests and work queues in the registry that these packages
	// share, in addition to the metrics of Go and of the process.
	_ "k8s.io/component-base/metrics/prometheus/restclient"
	_ "k8s.io/component-base/metrics/prometheus/workqueue"
)

// metricsOptions are the settings of /metrics.
type metricsOptions struct {
	address           string
	secure            bool
	certFile, keyFile string
}

const (
	flagMetricsAddress = "metrics-bind-address"
	flagMetricsSecure  = "metrics-secure"
	flagCertFile       = "tls-cert-file"
	flagKeyFile        = "tls-private-key-file"
)

func defaultMetricsOptions() metricsOptions {
	return metricsOptions{address: ":8443", secure: true}
}

func (o *metricsOptions) declare(set *settings.Set) {
	set.Group("Metrics",
		settings.Setting{Var: &o.address, Flag: flagMetricsAddress, Field: "metrics.bindAddress", Help: "Address for /metrics; 0 to disable it."},
		settings.Setting{Var: &o.secure, Flag: flagMetricsSecure, Field: "metrics.secure",
			Help: "Serve /metrics over HTTPS to clients that the API server authorizes to get that path. If false: over HTTP to every client."},
		settings.Setting{Var: &o.certFile, Flag: flagCertFile, Field: "metrics.tlsCertFile",
			Help: "Certificate file for /metrics, in PEM format; reloaded when it changes. If unset: a self-signed certificate, generated at start."},
		settings.Setting{Var: &o.keyFile, Flag: flagKeyFile, Field: "metrics.tlsPrivateKeyFile", Help: "Private key file of the certificate, in PEM format."})
}

func (o *metricsOptions) validate() error {
	switch {
	case (o.certFile == "") != (o.keyFile == ""):
		return fmt.Errorf("--%s and --%s must be set together: set both or neither", flagCertFile, flagKeyFile)
	case o.certFile != "" && !o.secure:
		return fmt.Errorf("--%s has no effect with --%s=false; remove one of the two", flagCertFile, flagMetricsSecure)
	}
	return nil
}

// Metrics describes the metrics endpoint of one program.
type Metrics struct {
	Registry *metrics.Registry
	// Name and Namespace identify the Service for scrapes. A self-signed certificate is issued for it.
	Name, Namespace string
	// Config is used to ask the API server which clients may read the metrics.
	Config *rest.Config
}

// Metrics serves /metrics at its address until stop is called.
func (o *Options) Metrics(ctx context.Context, of Metrics) (stop func(), err error) {
	return of.serve(ctx, o.metrics)
}

func (m Metrics) serve(ctx context.Context, o metricsOptions) (stop func(), err error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Registry.Handler(legacyregistry.DefaultGatherer))
	endpoint := Endpoint{Flag: flagMetricsAddress, Address: o.address, What: "metrics", Handler: mux, Limits: withoutBodies()}
	if !o.secure {
		return endpoint.untilStopped(ctx)
	}
	if off(o.address) {
		return func() {}, nil
	}
	certificate, err := newCertificate(ctx, o, m.Name, m.Namespace)
	if err != nil {
		return nil, err
	}
	reviewer, err := m.newReviewer()
	if err != nil {
		return nil, err
	}
	endpoint.Handler, endpoint.Secure = reviewer.guard(mux), &tls.Config{GetCertificate: certificate, MinVersion: tls.VersionTLS12}
	return endpoint.untilStopped(ctx)
}

// newReviewer returns a reviewer with its own rate limit, so that scrapes with invalid
// tokens do not delay other requests.
func (m Metrics) newReviewer() (*reviewer, error) {
	config := rest.CopyConfig(m.Config)
	config.QPS, config.Burst, config.RateLimiter = 10, 20, nil
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the client that authorizes readers of metrics: %w", err)
	}
	return newReviewer(client.AuthenticationV1().TokenReviews(), client.AuthorizationV1().SubjectAccessReviews(), clock.RealClock{}), nil
}
