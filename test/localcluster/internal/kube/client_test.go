package kube

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"kube-queue.dev/kube-queue/test/localcluster/internal/require"
)

// serve returns a client of a fake server. It reads the client from a kubeconfig.
func serve(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	config := Kubeconfig{
		Server: server.URL, User: "system:somebody", Token: "secret",
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, config.Encode(), 0o600))
	client, err := FromKubeconfig(path)
	require.NoError(t, err)
	return client
}

// Create fails with the same code for an object that exists and for a conflict on a quota.
func TestErrorSaysWhetherTheObjectExists(t *testing.T) {
	for reason, exists := range map[string]bool{"AlreadyExists": true, "Conflict": false} {
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusConflict)
			io.WriteString(w, `{"kind":"Status","reason":"`+reason+`","message":"things \"a\": why"}`)
		})
		err := client.Create(t.Context(), "/things", nil)
		if !HasCode(err, http.StatusConflict) || Exists(err) != exists || err.Error() != `POST /things: 409 things "a": why` {
			t.Errorf("%s: got %v", reason, err)
		}
	}
}
