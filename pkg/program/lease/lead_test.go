package lease

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/pkg/program/serving"
)

// leaseServer is a fake of the leases of the API server, to fail when instructed to.
type leaseServer struct {
	mu     sync.Mutex
	lease  map[string]any
	broken atomic.Bool
}

func (s *leaseServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if s.broken.Load() {
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`, http.StatusInternalServerError)
		return
	}
	if req.Method == http.MethodGet && s.lease == nil {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
		return
	}
	if req.Method != http.MethodGet {
		s.lease = nil
		_ = json.NewDecoder(req.Body).Decode(&s.lease)
	}
	_ = json.NewEncoder(w).Encode(s.lease)
}

func (s *leaseServer) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	spec, _ := s.lease["spec"].(map[string]any)
	holder, _ := spec["holderIdentity"].(string)
	return holder
}

func leaseOf(t *testing.T, server *leaseServer) *Lease {
	t.Helper()
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	config := &rest.Config{Host: web.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	if _, err := kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	lease := New(DefaultOptions(), Candidate{Name: "thing", Namespace: "ns", Identity: "me", Config: config, Health: serving.NewHealth(func(bool) {})})
	lease.exit = func(int) { t.Error("the process was ended") }
	return lease
}

// saysReady asks the health of a lease's candidate.
func saysReady(lease *Lease) bool {
	w := httptest.NewRecorder()
	lease.Health.(*serving.Health).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	return w.Code == http.StatusOK
}

func TestLeaseIsReleasedAfterTheWorkHasStopped(t *testing.T) {
	server := &leaseServer{}
	lease := leaseOf(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	err := lease.Lead(ctx, func(ctx context.Context) error {
		if server.holder() != "me" {
			t.Errorf("the lease is held by %q while working", server.holder())
		}
		cancel()
		<-ctx.Done()
		if server.holder() != "me" {
			t.Errorf("the lease was given up before the work had stopped")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if server.holder() != "" {
		t.Errorf("the lease is still held by %q", server.holder())
	}
}

func TestAReplicaThatWaitsForTheLeaseIsReady(t *testing.T) {
	server := &leaseServer{}
	leader, standby := leaseOf(t, server), leaseOf(t, server)
	standby.Identity = "another"
	err := leader.Lead(t.Context(), func(context.Context) error {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		waiting := make(chan error, 1)
		go func() {
			waiting <- standby.Lead(ctx, func(context.Context) error { return errors.New("two lead") })
		}()
		for tick := time.Tick(10 * time.Millisecond); !saysReady(standby) && ctx.Err() == nil; <-tick {
		}
		if ctx.Err() != nil {
			t.Error("the replica that waits is not ready")
		}
		if saysReady(leader) {
			t.Error("the leader is ready before its work says so")
		}
		cancel()
		return <-waiting
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLostLeaseEndsTheProcess(t *testing.T) {
	server := &leaseServer{}
	lease := leaseOf(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	lease.exit = func(code int) {
		ended <- code
		cancel()
	}
	begin := time.Now()
	_ = lease.Lead(ctx, func(ctx context.Context) error {
		server.broken.Store(true)
		<-ctx.Done()
		return nil
	})
	if code := <-ended; code != exitLost {
		t.Errorf("exit status %d", code)
	}
	if took := time.Since(begin); took > leaseDuration-writeTimeout+time.Second {
		t.Errorf("it took %v", took)
	}
}
