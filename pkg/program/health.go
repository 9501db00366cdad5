package program

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

// health answers /healthz, which says that the process lives, and /readyz, which
// says that it has seen the cluster. A replica that waits for the lease is ready.
type health struct {
	ready atomic.Bool
}

func newHealth() *health { return &health{} }

func (h *health) markReady() { h.ready.Store(true) }

func (h *health) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch {
	case req.URL.Path == "/healthz":
		fmt.Fprintln(w, "ok")
	case req.URL.Path == "/readyz" && h.ready.Load():
		fmt.Fprintln(w, "ok")
	case req.URL.Path == "/readyz":
		http.Error(w, "caches have not synced yet", http.StatusServiceUnavailable)
	default:
		http.NotFound(w, req)
	}
}

// serve listens on the address until the returned function is called.
func (h *health) serve(ctx context.Context, address string) (func(), error) {
	if address == "0" || address == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for health checks (--health-bind-address=%s): %w", address, err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Health checks are no longer answered")
		}
	}()
	return func() { _ = server.Close() }, nil
}
