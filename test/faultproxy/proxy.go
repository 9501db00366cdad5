// Package faultproxy is a proxy between a program and the API server that injects faults for
// tests: late, repeated, failed or missing responses. The program uses TLS and HTTP/2 with
// its own token and does not notice the proxy. Watches are forwarded.
//
// Terms. A Rule selects the requests to which a Fault applies. A Fault replaces the forwarding
// of one request, an Exchange. A request has landed when the API server has answered it,
// whether or not the program receives the response. The complete proxy can be cut like a
// network: with Refuse, connections break and new ones fail; with Hang, all data is silently
// dropped.
//
// Rules and cuts can change at any time. A request in flight is not affected by a new rule. A
// cut stops requests that have not reached the API server.
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

// Proxy is one way to the API server.
type Proxy struct {
	network *network
	server  *httptest.Server
	direct  *httputil.ReverseProxy

	mu    sync.Mutex
	rules []*rule
}

// Start has a proxy listen for programs that want to reach the API server of the config.
// It passes on the token that it is sent, and has none of its own.
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
	// By TLS, for client-go sends no token without it.
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

// URL that programs reach the API server by.
func (p *Proxy) URL() string { return p.server.URL }

// Certificate of the proxy, in PEM, for programs to trust.
func (p *Proxy) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// Kubeconfig writes a file beside the one that is named, which leads through the proxy,
// and returns its name.
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

// Cut parts programs from the API server, until Heal.
func (p *Proxy) Cut(how Cut) { p.network.cut(how) }

// Heal ends a cut. Connections that it befell break at last: whatever was sent over them
// meanwhile is lost.
func (p *Proxy) Heal() { p.network.heal() }

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := read(r)
	fault := p.faultFor(request)
	if fault == nil && !request.Writes() {
		p.direct.ServeHTTP(w, r)
		return
	}
	// What changes something lands as a whole or not at all.
	body, err := io.ReadAll(r.Body)
	if err != nil || lost(r.Context()) {
		cut(r.Context())
		return
	}
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

// cut breaks the connection that a request came by.
func cut(ctx context.Context) {
	if l, is := ctx.Value(linkKey{}).(*link); is && !l.isLost() { // who is cut off is not reported
		l.reset()
	}
}

// lost reports whether what the request came by was cut.
func lost(ctx context.Context) bool {
	l, is := ctx.Value(linkKey{}).(*link)
	return is && l.isLost()
}
