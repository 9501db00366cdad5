package program

import (
	"fmt"
	"net/http"
	"sync"
)

// health answers /healthz, which says that the process lives, and /readyz, which
// says that it has seen the cluster. A replica that waits for the lease is ready.
type health struct {
	// works is told whether this replica leads and is ready.
	works func(bool)

	mu sync.Mutex
	// synced: the program says that it is ready. standsBy: another was seen to lead.
	// leads: the work is going on.
	synced, standsBy, leads bool
}

func newHealth(works func(bool)) *health { return &health{works: works} }

// note sets one of the three.
func (h *health) note(what *bool, is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*what = is
	h.works(h.leads && h.synced)
}

// ready: a standby has nothing to know, until it leads.
func (h *health) ready() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.synced || h.standsBy && !h.leads
}

func (h *health) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch {
	case req.URL.Path == "/healthz":
		fmt.Fprintln(w, "ok")
	case req.URL.Path == "/readyz" && h.ready():
		fmt.Fprintln(w, "ok")
	case req.URL.Path == "/readyz":
		http.Error(w, "caches have not synced yet", http.StatusServiceUnavailable)
	default:
		http.NotFound(w, req)
	}
}
