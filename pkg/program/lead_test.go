package program

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/pkg/program/lease"
	"kube-queue.dev/kube-queue/pkg/program/serving"
)

// standing is an Env that leads, and what it says of itself.
func standing(t *testing.T) (env *Env, ready, works func() bool) {
	t.Helper()
	var held []byte
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if req.Method != http.MethodGet {
			held, _ = io.ReadAll(req.Body)
		} else if held == nil {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		}
		_, _ = w.Write(held)
	}))
	t.Cleanup(api.Close)
	registry := metrics.New("thing", "v1")
	health := serving.NewHealth(registry.Lead)
	env = &Env{Name: "thing", Metrics: registry, health: health, lease: lease.New(lease.DefaultOptions(), lease.Candidate{Name: "thing", Namespace: "ns", Identity: "me", Health: health,
		Config: &rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}})}
	return env, func() bool { return saysReady(env.health) }, func() bool {
		w := httptest.NewRecorder()
		registry.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return strings.Contains(w.Body.String(), `kube_queue_leader{program="thing"} 1`)
	}
}

func saysReady(health http.Handler) bool {
	w := httptest.NewRecorder()
	health.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	return w.Code == http.StatusOK
}

func TestWhoLeadsWorksOnceItIsReady(t *testing.T) {
	for _, before := range []bool{true, false} {
		env, ready, works := standing(t)
		if before { // as job-extensions
			env.MarkReady()
		}
		if works() {
			t.Error("it says that it works before it leads")
		}
		if err := env.Lead(t.Context(), func(context.Context) error {
			if works() != before || ready() != before {
				t.Errorf("it leads, is marked ready: %v, and says that it works: %v, and is ready: %v", before, works(), ready())
			}
			env.MarkReady()
			if !works() || !ready() {
				t.Error("it works, and does not say so")
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if works() {
			t.Error("it says that it works, and does not")
		}
	}
}

func TestAReplicaThatWasStandbyIsNotReadyUntilItKnowsWhatItIsToDo(t *testing.T) {
	env, ready, works := standing(t)
	env.health.Standby()
	if !ready() || works() {
		t.Error("a standby is not ready, or says that it works")
	}
	if err := env.Lead(t.Context(), func(context.Context) error {
		env.health.Standby() // which is reported late
		if ready() || works() {
			t.Error("the state standby is taken for knowing what to do")
		}
		env.MarkReady()
		if !ready() || !works() {
			t.Error("it knows what to do, and is not ready")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
