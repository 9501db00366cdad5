package program

import (
	"fmt"
	"net/http"
	"sync/atomic"
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
