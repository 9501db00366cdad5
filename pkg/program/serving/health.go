package serving

import (
	"fmt"
	"net/http"
	"sync"
)

// Health answers /healthz, which says that the process lives, and /readyz, which
// says that it has seen the cluster. A replica that waits for the lease is ready.
type Health struct {
	// works is reported whether this replica leads and is ready.
	works func(bool)

	mu sync.Mutex
	// synced: the program says that it is ready. standsBy: another was seen to lead.
	// leads: the work is going on.
	synced, standsBy, leads bool
}

// NewHealth has works called with whether this replica leads and is ready.
func NewHealth(works func(bool)) *Health { return &Health{works: works} }

// Synced notes that the program has seen the cluster.
func (h *Health) Synced() { h.note(&h.synced, true) }

// StandsBy notes that another was seen to lead.
func (h *Health) StandsBy() { h.note(&h.standsBy, true) }

// Leads notes whether this replica does.
func (h *Health) Leads(is bool) { h.note(&h.leads, is) }

// note sets one of the three.
func (h *Health) note(what *bool, is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*what = is
	h.works(h.leads && h.synced)
}

// ready: a standby has nothing to know, until it leads.
func (h *Health) ready() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.synced || h.standsBy && !h.leads
}

func (h *Health) ServeHTTP(w http.ResponseWriter, req *http.Request) {
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
