package reconciler

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/pkg/events"
	"kube-queue.dev/kube-queue/test/require"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// frameworkOf returns a Framework with the options. It is noon. By default there is no API server, and events are
// discarded.
func frameworkOf(t testing.TB, opts Options) *Framework {
	t.Helper()
	if opts.Config == nil {
		opts.Config = &rest.Config{Host: "http://nowhere"}
	}
	if opts.Events == nil {
		opts.Events = silence{}
	}
	opts.Clock = clocktesting.NewFakeClock(noon)
	f, err := New(opts)
	require.NoError(t, err)
	return f
}

// jsonServer returns the config of an API server that answers each request with an object or an error.
func jsonServer(t testing.TB, answer func(*http.Request) any) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		object := answer(r)
		if refusal, is := object.(*apierrors.StatusError); is {
			status := refusal.Status()
			status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			w.WriteHeader(int(status.Code))
			object = status
		}
		if err := json.NewEncoder(w).Encode(object); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}
}

// listServer returns the config of an API server that answers each list with a text, and reports no changes. It passes
// each request to asked first.
func listServer(t testing.TB, list string, asked func(*http.Request)) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked(r)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, list)
			return
		}
		if err := http.NewResponseController(w).Flush(); err == nil {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// listed runs an informer until the end of the test, and waits until it has listed everything.
func listed(t testing.TB, in cache.SharedIndexInformer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 4*time.Minute)
	t.Cleanup(cancel) // before the server is closed, which waits for its watches
	go in.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), in.HasSynced) {
		t.Fatal("the cache is not filled")
	}
}

// cached puts an object into a cache.
func cached(t testing.TB, in cache.SharedIndexInformer, object any) {
	t.Helper()
	require.NoError(t, in.GetIndexer().Add(object))
}

// unreported ignores the results of lists and watches.
func unreported(error) {}

// silence discards events.
type silence struct{}

func (silence) Write(events.Event)  {}
func (silence) Repeat(events.Event) {}
func (silence) Keep(events.Event)   {}
func (silence) Forget(types.UID)    {}

// spoken are the events of jobs.
type spoken struct {
	// keeps has the event of each object that has one, and kept the last of them.
	keeps             map[types.UID]events.Event
	kept              *events.Event
	repeated, written []events.Event
}

func (s *spoken) Write(e events.Event)  { s.written = append(s.written, e) }
func (s *spoken) Repeat(e events.Event) { s.repeated = append(s.repeated, e) }

func (s *spoken) Keep(e events.Event) {
	if s.keeps == nil {
		s.keeps = map[types.UID]events.Event{}
	}
	s.keeps[e.Object.UID], s.kept = e, &e
}

func (s *spoken) Forget(object types.UID) {
	delete(s.keeps, object)
	s.kept = nil
}

func (s *spoken) says() string {
	if s.kept == nil {
		return ""
	}
	return string(s.kept.Reason) + " " + s.kept.Message
}
