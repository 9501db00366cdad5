package serving

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/pkg/program/settings"

	// client-go counts its requests and work queues in the one registry that these
	// packages share, beside those of Go and the process.
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
	set.Group("Metrics", func(fs *pflag.FlagSet) {
		fs.StringVar(&o.address, flagMetricsAddress, o.address, "Address of /metrics; 0 for none.")
		fs.BoolVar(&o.secure, flagMetricsSecure, o.secure,
			"Serve /metrics by HTTPS, to whoever the API server says may get that path. If false: by HTTP, to anybody.")
		fs.StringVar(&o.certFile, flagCertFile, o.certFile,
			"Certificate for /metrics, in PEM; read again when it changes. Unset: one is made at the start, which nobody vouches for.")
		fs.StringVar(&o.keyFile, flagKeyFile, o.keyFile, "Private key of the certificate, in PEM.")
	},
		settings.Setting{Flag: flagMetricsAddress, Field: "metrics.bindAddress"},
		settings.Setting{Flag: flagMetricsSecure, Field: "metrics.secure"},
		settings.Setting{Flag: flagCertFile, Field: "metrics.tlsCertFile"},
		settings.Setting{Flag: flagKeyFile, Field: "metrics.tlsPrivateKeyFile"})
}

func (o *metricsOptions) validate() error {
	switch {
	case (o.certFile == "") != (o.keyFile == ""):
		return fmt.Errorf("--%s and --%s go together: set both, or none", flagCertFile, flagKeyFile)
	case o.certFile != "" && !o.secure:
		return fmt.Errorf("--%s has no use with --%s=false", flagCertFile, flagMetricsSecure)
	}
	return nil
}

// Metrics are those of one program.
type Metrics struct {
	Registry *metrics.Registry
	// Name and Namespace of the Service by which they are scraped: a certificate that is
	// made is for it.
	Name, Namespace string
	// Config to ask the API server with who may read them.
	Config *rest.Config
}

// Metrics answers scrapes at their address, until stop is called.
func (o *Options) Metrics(ctx context.Context, of Metrics) (stop func(), err error) {
	return of.serve(ctx, o.metrics)
}

func (m Metrics) serve(ctx context.Context, o metricsOptions) (stop func(), err error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Registry.Handler(legacyregistry.DefaultGatherer))
	const what = "metrics"
	if !o.secure {
		return serveHTTP(ctx, flagMetricsAddress, o.address, what, mux, nil)
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
	return serveHTTP(ctx, flagMetricsAddress, o.address, what, reviewer.guard(mux),
		&tls.Config{GetCertificate: certificate, MinVersion: tls.VersionTLS12})
}

// newReviewer asks with a rate limit of its own: whoever scrapes with bad tokens does not
// hold up other requests.
func (m Metrics) newReviewer() (*reviewer, error) {
	config := rest.CopyConfig(m.Config)
	config.QPS, config.Burst, config.RateLimiter = 10, 20, nil
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client that asks who may read metrics: %w", err)
	}
	return newReviewer(client.AuthenticationV1().TokenReviews(), client.AuthorizationV1().SubjectAccessReviews(), clock.RealClock{}), nil
}
