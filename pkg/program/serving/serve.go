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

// serveHTTP serves handler on the address until the returned function is called. An empty
// address, or 0, disables it. flag names the setting of the address and what describes the
// endpoint, both for messages. If secure is set, it serves HTTPS.
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
		// Aborted connections, for example from port probes, are not errors of this program.
		ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "The server stopped unexpectedly", "what", what)
		}
	}()
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
