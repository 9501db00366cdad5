// Package serving is what a program answers by HTTP: whether it lives and is ready, its
// metrics, to those who may read them, and profiles.
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

// Health answers /healthz and /readyz at their address, until stop is called.
func (o *Options) Health(ctx context.Context, health *Health) (stop func(), err error) {
	return serveHTTP(ctx, "health-bind-address", o.healthAddress, "health checks", health, nil)
}

// Profiles answers /debug/pprof/ at its address, until stop is called.
func (o *Options) Profiles(ctx context.Context) (stop func(), err error) {
	return serveHTTP(ctx, "profiling-bind-address", o.profilingAddress, "profiles", profiles(), nil)
}

// serveHTTP answers on the address until the returned function is called; an empty
// address, or 0, is none. flag is how the address was given, what is what is served; by
// HTTPS where secure is set.
func serveHTTP(ctx context.Context, flag, address, what string, handler http.Handler, secure *tls.Config) (func(), error) {
	if off(address) {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for %s (--%s=%s): %w", what, flag, address, err)
	}
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second,
		BaseContext: func(net.Listener) context.Context {
			return klog.NewContext(context.Background(), klog.FromContext(ctx))
		},
		// Whoever connects and breaks off, as a probe of the port does, is no fault of ours.
		ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "No longer answered", "what", what)
		}
	}()
	return func() { _ = server.Close() }, nil
}

// off reports whether nothing is to be served at the address.
func off(address string) bool { return address == "0" || address == "" }

// profiles are those of net/http/pprof, below /debug/pprof/.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
