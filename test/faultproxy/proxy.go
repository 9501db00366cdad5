// Package faultproxy is a proxy between a program and the API server that injects faults for
// tests: lost requests and lost responses. The program uses TLS and HTTP/2 with its own token and
// does not notice the proxy. Reads and watches are forwarded.
//
// Terms. A Fault replaces the forwarding of one write, an Exchange. A request has landed when the
// API server has answered it, whether or not the program receives the response. The complete proxy
// can be cut like a network: with Refuse, connections break and new ones fail; with Hang, all data is
// silently dropped.
//
// Cuts can change at any time. A cut stops requests that have not reached the API server.
package faultproxy

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Proxy forwards requests to the API server, except for faults.
type Proxy struct {
	network *network
	server  *httptest.Server
	direct  *httputil.ReverseProxy

	mu sync.Mutex
	// fault handles the writes that match accepts.
	fault Fault
	match func(Request) bool
}

// Start starts a proxy for the API server of the config. The proxy forwards the token of each
// request, and has no token of its own.
func Start(config *rest.Config) (*Proxy, error) {
	config = rest.AnonymousClientConfig(config)
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("reaching %s: %w", config.Host, err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the address %q: %w", config.Host, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for programs: %w", err)
	}
	silent := log.New(io.Discard, "", 0) // connections are cut on purpose
	p := &Proxy{network: newNetwork(listener)}
	p.direct = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = target.Host },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, _ error) {
			if unanswered, is := r.Context().Value(unansweredKey{}).(*bool); is {
				*unanswered = true
			}
			cut(r.Context())
		},
		ErrorLog: silent,
	}
	// With TLS, because client-go sends a token only with TLS.
	p.server = &httptest.Server{Listener: p.network, EnableHTTP2: true, Config: &http.Server{
		Handler: p, ErrorLog: silent,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, linkKey{}, linkOf(conn))
		},
	}}
	p.server.StartTLS()
	return p, nil
}

// Close breaks all connections.
func (p *Proxy) Close() {
	p.network.cut(Refuse)
	p.server.Close()
}

// URL returns the address of the proxy.
func (p *Proxy) URL() string { return p.server.URL }

// Certificate returns the certificate of the proxy in PEM.
func (p *Proxy) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// Kubeconfig copies a kubeconfig into a file next to it, with the address of the proxy, and returns
// the name of the copy.
func (p *Proxy) Kubeconfig(direct string) (string, error) {
	config, err := clientcmd.LoadFromFile(direct)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", direct, err)
	}
	for _, c := range config.Clusters {
		*c = clientcmdapi.Cluster{Server: p.URL(), CertificateAuthorityData: p.Certificate()}
	}
	through := direct + ".proxied"
	if err := clientcmd.WriteToFile(*config, through); err != nil {
		return "", fmt.Errorf("writing %s: %w", through, err)
	}
	return through, nil
}

// Cut disconnects programs from the API server until Heal.
func (p *Proxy) Cut(how Cut) { p.network.cut(how) }

// Heal ends a cut. Connections that existed during the cut are closed, and the data on them is
// lost.
func (p *Proxy) Heal() { p.network.heal() }

// Intercept passes the writes that match accepts to the fault from now on.
func (p *Proxy) Intercept(match func(Request) bool, fault Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.match, p.fault = match, fault
}

// faultFor returns the fault of a write, or nil.
func (p *Proxy) faultFor(write Request) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == nil || !p.match(write) {
		return nil
	}
	return p.fault
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := read(r)
	if !request.Writes() {
		p.direct.ServeHTTP(w, r)
		return
	}
	// The complete body is read first, so that a write lands completely or not at all.
	body, err := io.ReadAll(r.Body)
	if err != nil || lost(r.Context()) {
		cut(r.Context())
		return
	}
	fault := p.faultFor(request)
	if fault == nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
		p.direct.ServeHTTP(w, r)
		return
	}
	x := &Exchange{Request: request, proxy: p, w: w, r: r, body: body}
	fault(x)
	if !x.done {
		x.Cut()
	}
}

type linkKey struct{}

// cut breaks the connection of a request.
func cut(ctx context.Context) {
	if l, is := ctx.Value(linkKey{}).(*link); is && !l.lost.Load() { // a lost connection must not show the failure
		l.reset()
	}
}

// lost reports whether the connection of the request was cut.
func lost(ctx context.Context) bool {
	l, is := ctx.Value(linkKey{}).(*link)
	return is && l.lost.Load()
}
