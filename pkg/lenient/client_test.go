package lenient

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/test/require"
)

var badText = strings.ReplaceAll(unitText(`,"resource":{"cpu":"1e1.5"}`, ""), `"name":"a"`, `"name":"bad"`)

// server answers like an API server.
func server(t *testing.T) *Client {
	t.Helper()
	handler := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Header.Get("Accept") != "application/json":
			http.Error(w, "not acceptable", http.StatusNotAcceptable)
		case strings.HasSuffix(r.URL.Path, "/namespaces/ns/queueunits/bad"), r.Method == http.MethodPatch:
			if body, _ := io.ReadAll(r.Body); r.Method == http.MethodPatch &&
				(string(body) != "{}" || r.Header.Get("Content-Type") != "application/merge-patch+json" || !strings.HasSuffix(r.URL.Path, "/bad/status")) {
				http.Error(w, "another patch", http.StatusBadRequest)
				return
			}
			fmt.Fprint(w, badText)
		case strings.HasSuffix(r.URL.Path, "/namespaces/unserved/queueunits/bad"):
			http.NotFound(w, r) // as for an unknown kind
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		}
	}
	s := httptest.NewServer(http.HandlerFunc(handler))
	t.Cleanup(s.Close)
	client, err := NewForConfig(&rest.Config{Host: s.URL, QPS: -1}, unitKind)
	require.NoError(t, err)
	return client
}

func TestOneIsReadAndPatchedThoughItCannotBeDecoded(t *testing.T) {
	client := server(t)
	object, err := client.Get(t.Context(), "ns", "bad")
	require.NoError(t, err)
	if _, isBad := object.(*Unreadable); !isBad || object.GetResourceVersion() != "7" {
		t.Errorf("read is %+v", object)
	}
	if version, err := client.Patch(t.Context(), types.MergePatchType, "ns", "bad", []byte("{}"), "status"); err != nil || version != "7" {
		t.Errorf("patched to version %q, error %v", version, err)
	}
	if _, err := client.Get(t.Context(), "ns", "none"); !apierrors.IsNotFound(err) {
		t.Errorf("one that is not there: %v", err)
	}
}

// Both are 404. An object can still be stored while its kind is not served.
func TestAnObjectThatIsNotThereIsReportedFromAKindThatIsNotServed(t *testing.T) {
	client := server(t)
	for _, test := range []struct {
		namespace string
		unserved  bool
	}{{"nowhere", false}, {"unserved", true}} {
		_, err := client.Get(t.Context(), test.namespace, "bad")
		if !apierrors.IsNotFound(err) {
			t.Fatalf("in %s the error is %v", test.namespace, err)
		}
		if got := apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse); got != test.unserved {
			t.Errorf("in %s the kind is taken not to be served: %v", test.namespace, got)
		}
	}
}
