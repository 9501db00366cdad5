package serving

import (
	"fmt"
	"net/http"
	"sync"
)

// Health serves /healthz, which reports that the process is alive, and /readyz, which
// reports that its caches have synced. A replica that waits for the lease is ready.
type Health struct {
	// works is called with whether this replica leads and is ready.
	works func(bool)

	mu sync.Mutex
	// synced: the program has marked itself ready. standby: another replica was seen to
	// lead. leads: the work is running.
	synced, standby, leads bool
}

// NewHealth returns a Health that calls works with whether this replica leads and is ready.
func NewHealth(works func(bool)) *Health { return &Health{works: works} }

// Synced records that the caches of the program have synced.
func (h *Health) Synced() { h.note(&h.synced, true) }

// Standby records that another replica was seen to lead.
func (h *Health) Standby() { h.note(&h.standby, true) }

// Leads records whether this replica leads.
func (h *Health) Leads(is bool) { h.note(&h.leads, is) }

// note sets one of the three states.
func (h *Health) note(what *bool, is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*what = is
	h.works(h.leads && h.synced)
}

// ready reports whether /readyz answers ok. A standby needs no caches until it leads.
func (h *Health) ready() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.synced || h.standby && !h.leads
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
