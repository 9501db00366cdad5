// Package serving serves the HTTP endpoints of a program: health checks, metrics for
// authorized clients, and profiles.
package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"k8s.io/klog/v2"
)

// Health serves /healthz and /readyz at their address until stop is called.
func (o *Options) Health(ctx context.Context, health *Health) (stop func(), err error) {
	return serveHTTP(ctx, "health-bind-address", o.healthAddress, "health checks", health, nil)
}

// Profiles serves /debug/pprof/ at its address until stop is called.
func (o *Options) Profiles(ctx context.Context) (stop func(), err error) {
	return serveHTTP(ctx, "profiling-bind-address", o.profilingAddress, "profiles", profiles(), nil)
}

// Endpoint is an HTTP endpoint of a program.
type Endpoint struct {
	// Flag is the name of the setting of the address, and What describes the endpoint, for messages.
	Flag, Address, What string
	Handler             http.Handler
	// Secure is the TLS configuration; nil for HTTP.
	Secure *tls.Config
}

// Serve serves the endpoint until the server is closed. It returns nil if the address disables the
// endpoint: it is empty or 0.
func (e Endpoint) Serve(ctx context.Context) (*http.Server, error) {
	if off(e.Address) {
		return nil, nil
	}
	listener, err := net.Listen("tcp", e.Address)
	if err != nil {
		return nil, fmt.Errorf("listening for %s (--%s=%s): %w", e.What, e.Flag, e.Address, err)
	}
	server := &http.Server{Handler: e.Handler, ReadHeaderTimeout: 5 * time.Second, TLSConfig: e.Secure,
		BaseContext: func(net.Listener) context.Context {
			return klog.NewContext(context.Background(), klog.FromContext(ctx))
		},
		// Aborted connections, for example from port probes, are not errors of this program.
		ErrorLog: log.New(io.Discard, "", 0)}
	serve := server.Serve
	if e.Secure != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	go func() {
		if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "The server stopped unexpectedly", "what", e.What)
		}
	}()
	return server, nil
}

// serveHTTP serves an endpoint until the returned function is called.
func serveHTTP(ctx context.Context, flag, address, what string, handler http.Handler, secure *tls.Config) (func(), error) {
	server, err := Endpoint{Flag: flag, Address: address, What: what, Handler: handler, Secure: secure}.Serve(ctx)
	if err != nil || server == nil {
		return func() {}, err
	}
	return func() { _ = server.Close() }, nil
}

// off reports whether the address disables the endpoint.
func off(address string) bool { return address == "0" || address == "" }

// profiles returns the handler of net/http/pprof at /debug/pprof/.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
