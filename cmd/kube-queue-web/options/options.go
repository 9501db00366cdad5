// Package options declares the settings of kube-queue-web.
package options

import (
	"errors"
	"net"
	"strings"

	"kube-queue.dev/kube-queue/pkg/program"
	"kube-queue.dev/kube-queue/pkg/program/settings"
)

// Name is the name of the program.
const Name = "kube-queue-web"

// FlagAddress is the flag of the address of the pages.
const FlagAddress = "bind-address"

// Options are the settings of kube-queue-web.
type Options struct {
	// Address is the address of the pages. CertFile and KeyFile are empty without TLS.
	Address, CertFile, KeyFile string
	// Server is the address of the API server, and CAFile has its CA.
	Server, CAFile string
	// Namespace is the namespace of the Queues.
	Namespace string

	hosts string
}

// New returns the defaults.
func New() *Options {
	return &Options{Address: ":8080", Namespace: "kube-queue", CAFile: "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"}
}

// Hosts are the host names of the pages.
func (o *Options) Hosts() []string { return strings.Split(o.hosts, ",") }

// Program returns the program with these options. The caller sets Environ and Run.
func (o *Options) Program() program.Program {
	return program.Program{Name: Name, Kind: "KubeQueueWebConfiguration", Anonymous: true, Settings: o.declare, Validate: o.validate}
}

func (o *Options) declare(set *settings.Set) {
	set.Group("General", settings.Setting{Var: &o.Namespace, Flag: "namespace", Field: "namespace", Help: "Namespace of the Queues, which is that of kube-queue."})
	set.Group("Pages",
		settings.Setting{Var: &o.Address, Flag: FlagAddress, Field: "bindAddress", Check: o.checkAddress, Help: "Address for the pages."},
		settings.Setting{Var: &o.hosts, Flag: "hosts", Field: "hosts", Form: settings.List(),
			Help: "Host names of the pages, as browsers send them, with the port if it is not the default port. Requests for other hosts are refused. Required."},
		settings.Setting{Var: &o.CertFile, Flag: "tls-cert-file", Field: "tlsCertFile",
			Help: "Certificate file for the pages, in PEM format; reloaded when it changes. If unset: the pages are served over HTTP, and anyone who reads the network between the proxy and the pod sees tokens."},
		settings.Setting{Var: &o.KeyFile, Flag: "tls-private-key-file", Field: "tlsPrivateKeyFile", Help: "Private key file of the certificate, in PEM format."})
	set.Group("API server",
		settings.Setting{Var: &o.Server, Flag: "server", Field: "server", Env: []string{envHost, envPort}, FromEnv: inCluster,
			Help: "Address of the API server, which gets the token of each request. Required outside of a pod."},
		settings.Setting{Var: &o.CAFile, Flag: "certificate-authority", Field: "certificateAuthority", Help: "File with the CA of the API server, in PEM format."})
}

// Variables that each container has.
const (
	envHost = "KUBERNETES_SERVICE_HOST"
	envPort = "KUBERNETES_SERVICE_PORT"
)

func inCluster(lookup func(string) string) (string, error) {
	if lookup(envHost) == "" || lookup(envPort) == "" {
		return "", nil
	}
	return "https://" + net.JoinHostPort(lookup(envHost), lookup(envPort)), nil
}

func (o *Options) checkAddress() error {
	if o.Address == "" || o.Address == "0" {
		return errors.New("must be an address such as :8080")
	}
	return nil
}

func (o *Options) validate() error {
	switch {
	case o.hosts == "":
		return errors.New("--hosts must list the host names of the pages")
	case !strings.HasPrefix(o.Server, "https://"):
		return errors.New("--server must be the address of the API server, such as https://192.0.2.1:6443; tokens are not sent without TLS")
	case (o.CertFile == "") != (o.KeyFile == ""):
		return errors.New("--tls-cert-file and --tls-private-key-file must be set together: set both or neither")
	}
	return nil
}
