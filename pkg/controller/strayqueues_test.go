package controller

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/test/require"
)

// metadataOf serves a list of object metadata, and a watch with these events.
func metadataOf(t *testing.T, path, selector string, events []any, items ...any) *rest.Config {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		if r.URL.Path != path || query.Get("fieldSelector") != selector {
			t.Errorf("it requests %s", r.URL)
		}
		switch {
		case query.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
		case query.Get("watch") == "":
			if err := json.NewEncoder(w).Encode(map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
				"metadata": map[string]any{"resourceVersion": "7"}, "items": items}); err != nil {
				t.Error(err)
			}
		default:
			for _, event := range events {
				if err := json.NewEncoder(w).Encode(event); err != nil {
					t.Error(err)
				}
			}
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}
}

func TestAQueueOutsideOfTheNamespaceIsReported(t *testing.T) {
	item := func(namespace, name string) map[string]any {
		return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
			"metadata": map[string]any{"namespace": namespace, "name": name, "uid": "u-" + name, "resourceVersion": "7", "generation": 2}}
	}
	// One Queue is in the namespace, as from an API server that ignores the selector.
	config := metadataOf(t, "/apis/scheduling.x-k8s.io/v1alpha1/queues", "metadata.namespace!=kube-queue", nil, item("team", "mine"), item("kube-queue", "right"))
	seen := make(chan backend.Notice, 10)
	require.NoError(t, watchStrayQueues(t.Context(), config, "kube-queue", func(n backend.Notice) { seen <- n }))
	select {
	case n := <-seen:
		if n.Type != "Warning" || n.Reason != "IgnoredQueue" || n.About.GetNamespace() != "team" || n.About.GetName() != "mine" || n.About.GetUID() != "u-mine" ||
			n.About.GetKind() != "Queue" || !strings.Contains(n.Message, "only Queues in namespace kube-queue are used") {
			t.Errorf("it reports %+v about %v", n, n.About)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nothing is reported")
	}
	if len(seen) != 0 {
		t.Errorf("it also reports %+v", <-seen)
	}
}
