package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// server is an API server with only a version, and a lease without a holder. They show what a program does.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	leases map[string]*coordinationv1.Lease
}

func newServer(t *testing.T) *server {
	s := &server{leases: map[string]*coordinationv1.Lease{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

func (s *server) answer(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case req.URL.Path == "/version":
		fmt.Fprint(w, `{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}`)
	case req.Method == http.MethodPost && strings.Contains(req.URL.Path, "/leases"):
		s.take(w, req)
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
	}
}

// take gives a lease to the first client that requests it.
func (s *server) take(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	lease, ok := object.(*coordinationv1.Lease)
	if err != nil || !ok {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.leases[req.URL.Path] = lease
	s.mu.Unlock()
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(lease)
}

// taken returns the duration of a lease in seconds; nil if it was not taken.
func (s *server) taken(namespace string) *int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease := s.leases["/apis/coordination.k8s.io/v1/namespaces/"+namespace+"/leases"]
	if lease == nil {
		return nil
	}
	return lease.Spec.LeaseDurationSeconds
}

// kubeconfig returns a kubeconfig file for the server.
func (s *server) kubeconfig(t *testing.T) string {
	return write(t, "kubeconfig", map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "k", "user": "u"}}},
		"clusters": []any{map[string]any{"name": "k", "cluster": map[string]any{"server": s.URL}}},
		"users":    []any{map[string]any{"name": "u", "user": map[string]any{}}},
	})
}
