package elasticquota

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/controller/backend"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/test/require"
)

// serve answers a list with the trees, and a watch with the events as they arrive.
func serve(t *testing.T, events <-chan any, trees ...*unstructured.Unstructured) *rest.Config {
	t.Helper()
	write := func(w http.ResponseWriter, value any) {
		if err := json.NewEncoder(w).Encode(value); err != nil {
			t.Error(err)
		}
		w.(http.Flusher).Flush()
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		switch {
		case r.URL.Path == "/forbidden", r.URL.Path == "/api/v1/namespaces": // this controller may not watch them
			w.WriteHeader(http.StatusForbidden)
			write(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": http.StatusForbidden})
		case strings.HasPrefix(r.URL.Path, "/apis/apps/v1/namespaces/kube-queue/controllerrevisions"):
			serveRevisions(w, r, write)
		case r.Method != http.MethodGet || r.URL.Path != "/apis/scheduling.sigs.k8s.io/v1beta1/elasticquotatrees":
			t.Errorf("%s %s", r.Method, r.URL)
		case query.Get("sendInitialEvents") != "": // as an API server that does not support this
			w.WriteHeader(http.StatusUnprocessableEntity)
			write(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": http.StatusUnprocessableEntity})
		case query.Get("watch") == "":
			write(w, map[string]any{"kind": "ElasticQuotaTreeList", "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
				"metadata": map[string]any{"resourceVersion": "1"}, "items": trees})
		default:
			w.(http.Flusher).Flush()
			for {
				select {
				case event := <-events:
					write(w, event)
				case <-r.Context().Done():
					return
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}
}

// serveRevisions answers like an API server without ControllerRevisions.
func serveRevisions(w http.ResponseWriter, r *http.Request, write func(http.ResponseWriter, any)) {
	switch query := r.URL.Query(); {
	case r.Method != http.MethodGet:
		write(w, map[string]any{"kind": "ControllerRevision", "apiVersion": "apps/v1"})
	case query.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		write(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": http.StatusUnprocessableEntity})
	case query.Get("watch") == "":
		write(w, map[string]any{"kind": "ControllerRevisionList", "apiVersion": "apps/v1", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{}})
	default:
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

// started is a Source that watches, and the changes that it has passed on.
type started struct {
	*Source
	mu    sync.Mutex
	taken []func() backend.Change
}

func start(t *testing.T, opts tree.Options, config *rest.Config) *started {
	t.Helper()
	s := &started{Source: New(opts, PodOptions{})}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel) // before the server closes, because closing waits for the watches
	synced, err := s.Start(ctx, backend.Host{Config: config, Clock: clock.RealClock{}, Namespace: "kube-queue", Names: resources.NewNames(), Moving: func() bool { return false }, Take: func(seen func() backend.Change) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken = append(s.taken, seen)
	}})
	require.NoError(t, err)
	s.await(t, "all is listed", func() bool {
		return !slices.ContainsFunc(synced, func(is cache.InformerSynced) bool { return !is() })
	})
	return s
}

func (s *started) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), is) {
		t.Fatalf("not within 30 s: %s", what)
	}
}

// next returns the result of the first observation.
func (s *started) next(t *testing.T) backend.Change {
	t.Helper()
	s.await(t, "something is seen", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.taken) > 0
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.taken[0]
	s.taken = s.taken[1:]
	return seen()
}

func TestTreesAreWatchedFromTheStartToTheirEnd(t *testing.T) {
	events := make(chan any, 1)
	young, other := treeObject(t, "kube-system", "young", time.Hour, 1, goodRoot), treeObject(t, "default", "other", time.Hour, 1, goodRoot)
	s := start(t, tree.Options{}, serve(t, events, young, other))
	if len(s.taken) != 2 {
		t.Fatalf("%d trees are seen before all is listed, want 2", len(s.taken))
	}
	for range 2 {
		if c := s.next(t); c.Quota != nil || c.Notices != nil {
			t.Fatalf("decided before all was listed: %+v", c)
		}
	}
	if c := s.Listed(); c.Quota == nil || c.Quota.Backend == nil || reasonsOf(c.Notices) != "IgnoredQuotaTree other" {
		t.Fatalf("with all listed: %+v", c)
	}
	change := func(kind string, object *unstructured.Unstructured) backend.Change {
		t.Helper()
		events <- map[string]any{"type": kind, "object": object}
		return s.next(t)
	}
	if c := change("MODIFIED", treeObject(t, "kube-system", "young", time.Hour, 2, `{name: root, namespaces: [a], max: {cpu: 5}}`)); c.Quota == nil || c.Quota.Backend == nil {
		t.Errorf("with the tree changed: %+v", c)
	}
	if c := change("DELETED", young); c.Quota == nil || c.Quota.Missing == nil || c.Quota.Missing.Reason != wellknown.ReasonNoQuota {
		t.Errorf("with the tree deleted: %+v", c)
	}
}

func TestTheOptionsHoldForEveryTree(t *testing.T) {
	rate, err := resources.ParseRate("1.5")
	require.NoError(t, err)
	for _, c := range []struct {
		name string
		opts tree.Options
		fits bool
	}{{"none", tree.Options{}, false}, {"an oversell rate", tree.Options{Oversell: rate}, true}} {
		s := start(t, c.opts, serve(t, nil, treeObject(t, "kube-system", "t", time.Hour, 1, goodRoot)))
		s.next(t)
		group, refusal := s.Listed().Quota.Backend.Place("a", "")
		if refusal != nil {
			t.Fatal(refusal)
		}
		demand, err := s.Demand(&schedulingv1alpha1.QueueUnit{Spec: schedulingv1alpha1.QueueUnitSpec{Resource: corev1.ResourceList{"cpu": resource.MustParse("6")}}})
		require.NoError(t, err)
		if refusal := group.Fits(demand); (refusal == nil) != c.fits {
			t.Errorf("%s: 6 cores are refused for %v", c.name, refusal)
		}
	}
}
