// Package serving serves the HTTP endpoints of a program: health checks, metrics for authorized clients, profiles,
// and webhooks.
//
// Anyone who reaches a port is a client, so each server has Limits. At a limit, the client that has kept the server
// waiting longest is dropped.
//
// The API server decides who can read metrics, by a TokenReview and a SubjectAccessReview. The library for this is
// larger than the controller. Profiles contain memory and are served without authentication, so their address must be
// on the loopback interface.
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

	"k8s.io/klog/v2"
)

// Health serves /healthz and /readyz at their address until stop is called.
func (o *Options) Health(ctx context.Context, health *Health) (stop func(), err error) {
	return Endpoint{Flag: "health-bind-address", Address: o.healthAddress, What: "health checks", Handler: health, Limits: withoutBodies()}.untilStopped(ctx)
}

// Profiles serves /debug/pprof/ at its address until stop is called.
func (o *Options) Profiles(ctx context.Context) (stop func(), err error) {
	limits := withoutBodies()
	limits.AnswerTime = 0 // a profile takes as long as its request says
	return Endpoint{Flag: "profiling-bind-address", Address: o.profilingAddress, What: "profiles", Handler: profiles(), Limits: limits}.untilStopped(ctx)
}

// Endpoint is an HTTP endpoint of a program.
type Endpoint struct {
	// Flag is the name of the setting of the address, and What describes the endpoint, for messages.
	Flag, Address, What string
	Handler             http.Handler
	// Secure is the TLS configuration; nil for HTTP.
	Secure *tls.Config
	// Limits are required: a server without connections serves no client.
	Limits Limits
}

// Serve serves the endpoint until the server is closed. It returns nil if the address disables the
// endpoint: it is empty or 0.
func (e Endpoint) Serve(ctx context.Context) (*http.Server, error) {
	if off(e.Address) {
		return nil, nil
	}
	opened, err := net.Listen("tcp", e.Address)
	if err != nil {
		return nil, fmt.Errorf("listening for %s (--%s=%s): %w", e.What, e.Flag, e.Address, err)
	}
	limiter := newLimiter(e.Limits, e.Handler)
	server := limiter.server()
	server.TLSConfig = e.Secure
	server.BaseContext = func(net.Listener) context.Context {
		return klog.NewContext(context.Background(), klog.FromContext(ctx))
	}
	// Aborted connections, for example from port probes, are not errors of this program.
	server.ErrorLog = log.New(io.Discard, "", 0)
	serve := server.Serve
	if e.Secure != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	go func() {
		if err := serve(listener{opened, limiter}); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "The server stopped unexpectedly", "what", e.What)
		}
	}()
	return server, nil
}

// untilStopped serves the endpoint until stop is called.
func (e Endpoint) untilStopped(ctx context.Context) (stop func(), err error) {
	server, err := e.Serve(ctx)
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
