package serving

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func status(h *Health, path string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code
}

func TestAReplicaIsReadyOnceItKnowsWhatItIsToDoAndWorksWhileItLeadsAsWell(t *testing.T) {
	type step struct {
		what         string
		do           func(*Health)
		ready, works bool
	}
	begins := func(h *Health) { h.Leads(true) }
	ends := func(h *Health) { h.Leads(false) }
	for name, steps := range map[string][]step{
		"as job-extensions, which syncs before it leads": {
			{"it has synced", (*Health).Synced, true, false},
			{"it leads", begins, true, true},
			{"it says again that it has synced", (*Health).Synced, true, true},
			{"it leads no longer", ends, true, false},
		},
		"as kube-queue-controller, which syncs when it leads": {
			{"it leads", begins, false, false},
			{"it has synced", (*Health).Synced, true, true},
			{"it leads no longer", ends, true, false},
		},
		"a standby, which has nothing to sync before it leads": {
			{"another replica leads", (*Health).Standby, true, false},
			{"it leads", begins, false, false},
			{"that another one led is reported late", (*Health).Standby, false, false},
			{"it has synced", (*Health).Synced, true, true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			works := false
			h := NewHealth(func(is bool) { works = is })
			if status(h, "/healthz") != http.StatusOK || status(h, "/readyz") != http.StatusServiceUnavailable {
				t.Error("at first it is not alive, or is ready")
			}
			for _, s := range steps {
				s.do(h)
				if ready := status(h, "/readyz") == http.StatusOK; ready != s.ready || works != s.works {
					t.Errorf("%s: ready %t, works %t; want %t, %t", s.what, ready, works, s.ready, s.works)
				}
			}
		})
	}
}
