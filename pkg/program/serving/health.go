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
	// synced is whether the program has marked itself ready, standby whether another replica was seen to lead, and
	// leads whether the work is running.
	synced, standby, leads bool
	// held is why the work cannot begin, until this replica leads.
	held string
	// blocked returns another reason why the replica is not ready; it can be nil.
	blocked func() string
}

// NewHealth returns a Health that calls works with whether this replica leads and is ready.
func NewHealth(works func(bool)) *Health { return &Health{works: works} }

// Synced records that the caches of the program have synced.
func (h *Health) Synced() { h.note(&h.synced, true) }

// Standby records that another replica was seen to lead.
func (h *Health) Standby() { h.note(&h.standby, true) }

// Held records that another process holds the lease although there must be only one.
func (h *Health) Held(by string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = fmt.Sprintf("another process holds the lease: %s", by)
}

// Leads records whether this replica leads.
func (h *Health) Leads(is bool) { h.note(&h.leads, is) }

// note sets one of the three states.
func (h *Health) note(what *bool, is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*what = is
	h.works(h.leads && h.synced)
}

// Blocks makes /readyz fail while why returns a reason.
func (h *Health) Blocks(why func() string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.blocked = why
}

// notReady returns why /readyz fails; empty if it answers ok. A standby needs no caches until it
// leads.
func (h *Health) notReady() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.held != "" && !h.leads:
		return h.held
	case !h.synced && (!h.standby || h.leads):
		return "caches have not synced yet"
	case h.blocked != nil:
		return h.blocked()
	}
	return ""
}

func (h *Health) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch req.URL.Path {
	case "/healthz":
		fmt.Fprintln(w, "ok")
	case "/readyz":
		if why := h.notReady(); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	default:
		http.NotFound(w, req)
	}
}
