package program

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"k8s.io/klog/v2"
)

// serveHTTP answers on the address until the returned function is called; an empty
// address, or 0, is none. flag is how the address was given, what is what is served.
func serveHTTP(ctx context.Context, flag, address, what string, handler http.Handler) (func(), error) {
	if off(address) {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for %s (--%s=%s): %w", what, flag, address, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "No longer answered", "what", what)
		}
	}()
	return func() { _ = server.Close() }, nil
}

// off tells whether nothing is to be served at the address.
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
