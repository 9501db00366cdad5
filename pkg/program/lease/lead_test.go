package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/pkg/program/serving"
	"kube-queue.dev/kube-queue/test/require"
)

// leaseServer fakes the leases of an API server, and fails on request.
type leaseServer struct {
	mu     sync.Mutex
	lease  map[string]any
	writes int
	broken atomic.Bool
	// refused counts the requests while the server was broken.
	refused atomic.Int32
}

func (s *leaseServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if s.broken.Load() {
		s.refused.Add(1)
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`, http.StatusInternalServerError)
		return
	}
	if req.Method == http.MethodGet && s.lease == nil {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
		return
	}
	if req.Method != http.MethodGet {
		var sent map[string]any
		_ = json.NewDecoder(req.Body).Decode(&sent)
		meta := sent["metadata"].(map[string]any)
		if s.lease != nil && meta["resourceVersion"] != s.version() {
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`))
			return
		}
		s.writes++
		meta["resourceVersion"] = fmt.Sprint(s.writes)
		s.lease = sent
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

// take makes another process the holder.
func (s *leaseServer) take(holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease["spec"].(map[string]any)["holderIdentity"] = holder
	s.lease["metadata"].(map[string]any)["resourceVersion"] = "taken"
}

func (s *leaseServer) version() any { return s.lease["metadata"].(map[string]any)["resourceVersion"] }

// clear deletes the lease.
func (s *leaseServer) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease = nil
}

func leaseOf(t *testing.T, server *leaseServer) *Lease {
	t.Helper()
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	config := &rest.Config{Host: web.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	_, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	lease := New(DefaultOptions(), Candidate{Name: "thing", Namespace: "ns", Identity: "me", Config: config, Health: serving.NewHealth(func(bool) {})})
	lease.exit = func(int) { t.Error("the process was ended") }
	return lease
}

// says returns what /readyz of a lease's candidate answers.
func says(lease *Lease) string {
	w := httptest.NewRecorder()
	lease.Health.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	return w.Body.String()
}

func saysReady(lease *Lease) bool { return says(lease) == "ok\n" }

func TestLeaseIsReleasedAfterTheWorkHasStopped(t *testing.T) {
	server := &leaseServer{}
	lease := leaseOf(t, server)
	lease.Labels = map[string]string{"a": "b"}
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
	require.NoError(t, err)
	if server.holder() != "" {
		t.Errorf("the lease is still held by %q", server.holder())
	}
	if labels, _ := server.lease["metadata"].(map[string]any)["labels"].(map[string]any); labels["a"] != "b" {
		t.Errorf("the lease has the labels %v", labels)
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
	require.NoError(t, err)
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

func TestTheOnlyReplicaWaitsWhileAnotherHoldsTheLease(t *testing.T) {
	server := &leaseServer{}
	first, second := leaseOf(t, server), leaseOf(t, server)
	first.opts.leaderElect, second.opts.leaderElect, second.Identity = false, false, "another"
	secondWorks := make(chan struct{})
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	err := first.Lead(ctx, func(context.Context) error {
		if holder := server.holder(); holder != "me" {
			t.Errorf("the lease is held by %q while the first one works", holder)
		}
		first.Health.Synced()
		go func() {
			ended <- second.Lead(ctx, func(ctx context.Context) error {
				close(secondWorks)
				<-ctx.Done()
				return nil
			})
		}()
		require.Becomes(t, "the second one says who holds the lease", func() bool { return says(second) == "another process holds the lease: me\n" })
		select {
		case <-secondWorks:
			t.Error("both work")
		default:
		}
		if !saysReady(first) {
			t.Error("the first one is not ready")
		}
		return nil
	})
	require.NoError(t, err)
	<-secondWorks // the first one has released the lease
	if says(second) != "caches have not synced yet\n" {
		t.Errorf("the second one works, and says %q", says(second))
	}
	cancel()
	require.NoError(t, <-ended)
}

// No other replica could take over, and an exit would only restart this one.
func TestTheOnlyReplicaGoesOnWithoutRenewals(t *testing.T) {
	server := &leaseServer{}
	lease := leaseOf(t, server)
	lease.opts = Options{lease: times{duration: time.Second, renew: 100 * time.Millisecond, retry: 10 * time.Millisecond}}
	err := lease.Lead(t.Context(), func(ctx context.Context) error {
		server.broken.Store(true)
		server.clear()
		require.Becomes(t, "renewals have failed for several deadlines", func() bool { return server.refused.Load() > 20 })
		if err := lease.term.check(); err != nil {
			t.Errorf("writes are blocked: %v", err)
		}
		server.broken.Store(false)
		require.Becomes(t, "it holds the lease again", func() bool { return server.holder() == "me" })
		return nil
	})
	require.NoError(t, err)
}

// The process that took the lease works.
func TestTheOnlyReplicaEndsWhenAnotherHasTakenTheLease(t *testing.T) {
	server := &leaseServer{}
	lease := leaseOf(t, server)
	lease.opts.leaderElect = false
	ended := make(chan int, 1)
	lease.exit = func(code int) { ended <- code }
	err := lease.Lead(t.Context(), func(ctx context.Context) error {
		server.take("another")
		if code := <-ended; code != exitLost {
			t.Errorf("exit status %d", code)
		}
		return nil
	})
	require.NoError(t, err)
	if holder := server.holder(); holder != "another" {
		t.Errorf("the lease is held by %q", holder)
	}
}
