package kube

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/test/require"
)

// Create fails with the same code for an object that exists and for a conflict on a quota.
func TestErrorSaysWhetherTheObjectExists(t *testing.T) {
	for reason, exists := range map[string]bool{"AlreadyExists": true, "Conflict": false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"`+reason+`","message":"things \"a\": why"}`)
		}))
		t.Cleanup(server.Close)
		client, err := New(&rest.Config{Host: server.URL})
		require.NoError(t, err)
		err = client.Create(t.Context(), "/things", nil)
		if apierrors.IsAlreadyExists(err) != exists || apierrors.IsConflict(err) == exists || err.Error() != `things "a": why` {
			t.Errorf("%s: got %v", reason, err)
		}
	}
}
