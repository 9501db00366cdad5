package serving

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestReadyOnlyOnceMarked(t *testing.T) {
	h := NewHealth(func(bool) {})
	status := func(path string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	if got := status("/healthz"); got != http.StatusOK {
		t.Errorf("healthz: %d", got)
	}
	if got := status("/readyz"); got != http.StatusServiceUnavailable {
		t.Errorf("readyz before caches have synced: %d", got)
	}
	h.Synced()
	if got := status("/readyz"); got != http.StatusOK {
		t.Errorf("readyz after: %d", got)
	}
}
