package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"kube-queue.dev/kube-queue/pkg/follow"
	"kube-queue.dev/kube-queue/pkg/program/serving"
	"kube-queue.dev/kube-queue/pkg/program/settings"
)

// Settings are the settings of the webhooks.
type Settings struct {
	Address string
	// Manage is whether the program makes the certificate and writes it into the Secret and caBundle.
	Manage bool
	// Advertise is the address and port at which API servers reach this replica, for webhooks that only one replica at
	// a time answers. If empty, the program does not write the endpoints of the Service.
	Advertise string
	// ClientCA is the file with the CA of the accepted clients; empty if the webhooks answer all clients.
	ClientCA string
}

const flagAddress = "webhook-bind-address"

// DefaultSettings returns the defaults: no webhooks.
func DefaultSettings() Settings { return Settings{Address: "0", Manage: true} }

// On reports whether webhooks are served.
func (s *Settings) On() bool { return s.Address != "" && s.Address != "0" }

// DeclareLed is Declare for webhooks that only one replica at a time answers.
func (s *Settings) DeclareLed(set *settings.Set, purpose string) {
	s.Declare(set, purpose)
	set.Group("Webhooks",
		settings.Setting{Var: &s.Advertise, Flag: "webhook-advertise-address", Field: "webhook.advertiseAddress", Check: s.checkAdvertised,
			Help: "IP address and port at which API servers reach the webhooks of this replica. The leader writes it into the EndpointSlice of the Service, which has no selector. If empty, it does not."},
		settings.Setting{Var: &s.ClientCA, Flag: flagClientCA, Field: "webhook.clientCAFile",
			Help: "File with a CA, in PEM format, that signs only client certificates of API servers; reloaded when it changes. Other clients get no answer. If unset: only reviews with the proof of the policy kube-queue-reviews are answered."})
}

func (s *Settings) checkAdvertised() error {
	if s.Advertise == "" {
		return nil
	}
	_, err := s.advertised()
	return err
}

// advertised returns the address and port of Advertise. Manifests do not know the IP family of the cluster, so brackets
// around the address are always optional.
func (s *Settings) advertised() (netip.AddrPort, error) {
	at := max(0, strings.LastIndexByte(s.Advertise, ':'))
	host := s.Advertise[:at]
	if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
		host = strings.TrimSuffix(inner, "]")
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := strconv.ParseUint(strings.TrimPrefix(s.Advertise[at:], ":"), 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("reading the port: %w", err)
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(port)), nil
}

// Declare adds the settings to the set. The purpose is what the webhooks do, such as "which holds jobs".
func (s *Settings) Declare(set *settings.Set, purpose string) {
	set.Group("Webhooks",
		settings.Setting{Var: &s.Address, Flag: flagAddress, Field: "webhook.bindAddress",
			Help: "Address for the admission webhook, " + purpose + "; 0 to disable it."},
		settings.Setting{Var: &s.Manage, Flag: "webhook-manage-certificate", Field: "webhook.manageCertificate",
			Help: "Create and renew the certificate of the webhooks, and write it into the Secret and the webhook configurations. If false: another program, such as cert-manager, does this."})
}

// Options describe the webhooks of a program.
type Options struct {
	Settings
	Client kubernetes.Interface
	// Namespace and Service identify the Service in front of the server. The Secret has the same name.
	Namespace, Service string
	// Mutating and Validating are the names of the webhook configurations.
	Mutating, Validating []string
	Handler              http.Handler
	// Largest is the maximum size of a request, in bytes.
	Largest int
	// Expires is called with the expiry of the certificate, in seconds since 1970.
	Expires func(float64)
	Clock   clock.Clock
}

// Server serves webhooks.
type Server struct {
	options     Options
	certificate *certificate
	secret      cache.SharedIndexInformer
	// changed receives a value when the Secret may have changed.
	changed chan struct{}
	http    *http.Server
	// stopping is closed when the program ends; end ends the watch of the Secret.
	stopping <-chan struct{}
	end      context.CancelFunc
}

// drain is how long the server keeps serving after the program is asked to stop. After that, no API server opens
// connections to this replica.
const drain = 5 * time.Second

// Start serves webhooks until Stop. It does not wait for the certificate.
func Start(ctx context.Context, options Options) (*Server, error) {
	s := &Server{options: options, certificate: &certificate{expires: options.Expires}, changed: make(chan struct{}, 1), stopping: ctx.Done()}
	s.secret = coreinformers.NewFilteredSecretInformer(options.Client, options.Namespace, 0, cache.Indexers{}, named(options.Service))
	observe := func(secret *corev1.Secret) {
		s.certificate.observe(ctx, secret)
		follow.Wake(s.changed)
	}
	if _, err := follow.Objects(s.secret, observe, func(*corev1.Secret) { follow.Wake(s.changed) }); err != nil {
		return nil, fmt.Errorf("watching Secret %s/%s: %w", options.Namespace, options.Service, err)
	}
	secure := &tls.Config{GetCertificate: s.certificate.get, MinVersion: tls.VersionTLS12}
	if options.ClientCA != "" {
		if err := demandClients(secure, options.ClientCA); err != nil {
			return nil, err
		}
	}
	server, err := serving.Endpoint{Flag: flagAddress, Address: options.Address, What: "webhooks", Handler: options.Handler, Secure: secure, Limits: serving.ForWebhooks(options.Largest)}.Serve(ctx)
	if err != nil {
		return nil, err
	}
	s.http = server
	// The certificate can be replaced while the server drains.
	watching, end := context.WithCancel(context.WithoutCancel(ctx))
	s.end = end
	go s.secret.RunWithContext(watching)
	return s, nil
}

// NotReady returns why the replica must not get requests; empty if it may.
func (s *Server) NotReady() string {
	select {
	case <-s.stopping:
		return "the program stops"
	default:
	}
	if _, err := s.certificate.get(nil); err != nil {
		return fmt.Sprintf("Secret %s/%s has no certificate for the webhooks", s.options.Namespace, s.options.Service)
	}
	return ""
}

// Stop stops the server. If the program was asked to stop, the server serves for another 5 s while /readyz fails. So
// this replica is removed from the Service before its port closes.
func (s *Server) Stop(ctx context.Context) {
	select {
	case <-s.stopping:
		klog.FromContext(ctx).Info("The webhooks drain", "for", drain)
		<-s.options.Clock.After(drain)
	default:
	}
	s.end()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Requests of webhooks were aborted")
	}
}

// named selects an object by its name.
func named(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
}
