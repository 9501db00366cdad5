package lease

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

func TestWritesCarryADeadlineAndReadsDoNot(t *testing.T) {
	for method, want := range map[string]string{"GET": "", "POST": "4s", "PATCH": "4s", "DELETE": "4s"} {
		t.Run(method, func(t *testing.T) {
			var got string
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
				got = req.URL.Query().Get("timeout")
			}))
			defer server.Close()
			req, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
			require.NoError(t, err)
			resp, err := writeDeadline(http.DefaultTransport).RoundTrip(req)
			require.NoError(t, err)
			resp.Body.Close()
			if got != want {
				t.Errorf("timeout %q, want %q", got, want)
			}
		})
	}
}
