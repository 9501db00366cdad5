package events

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/test/require"
)

// full is a client whose API server forbids new events in one namespace, as an admission policy may.
type full struct {
	*fake.Clientset
	refuses atomic.Value
	// tried is the number of refused events, and dropped the number of dropped ones.
	tried, dropped atomic.Int32
}

func newFull(namespace string) *full {
	f := &full{Clientset: fake.NewClientset()}
	f.refuses.Store(namespace)
	f.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetNamespace() != f.refuses.Load() {
			return false, nil, nil
		}
		f.tried.Add(1)
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "e", errors.New("no events here"))
	})
	return f
}

func (f *full) accept()     { f.refuses.Store("") }
func (f *full) drop(string) { f.dropped.Add(1) }
func (f *full) tries() int  { return int(f.tried.Load()) }
func (f *full) drops() int  { return int(f.dropped.Load()) }

// pass advances the clock in steps, and after each step waits until everything due is done. If the clock moves while
// the work queue computes a timer from it, the timer is late by a step. So after many failed checks, the clock moves
// on.
func pass(t *testing.T, w *Writer, clk *clocktesting.FakeClock, whole, step time.Duration) {
	t.Helper()
	until := func(what string, ok func() bool) {
		t.Helper()
		looks := 0
		require.Becomes(t, what, func() bool {
			if looks++; looks%500 == 0 {
				clk.Step(step)
			}
			return ok()
		})
	}
	for range whole / step {
		until("all waits", func() bool { return idle(w) && (entries(w) == 0 || waits(clk)) })
		clk.Step(step)
	}
	until("all is done", func() bool { return idle(w) })
}

// idle reports whether the writer has nothing to do until the clock moves.
func idle(w *Writer) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	for key, e := range w.entries {
		r := w.refusing[key.Namespace]
		if refused := r != nil && r.waits(key) && now.Before(r.Until); !refused && !now.Before(e.due()) {
			return false
		}
	}
	return w.queue.Len() == 0
}

func TestAnEventThatIsRefusedIsDroppedAfterSomeTriesAndCountedByItsReason(t *testing.T) {
	client, clk := newFull("ns"), clocktesting.NewFakeClock(noon)
	registry := metrics.New("thing", "v1")
	w, _ := run(t, client, clk, registry.EventDropped)
	w.Write(about("job", "Released", "1"))
	require.Becomes(t, "refused", func() bool { return client.tries() == 1 })
	pass(t, w, clk, 30*time.Second, time.Second)
	if got, left := client.tries(), entries(w); got != maxRefusals || left != 0 {
		t.Errorf("it was tried %d times, want %d, and %d events are left", got, maxRefusals, left)
	}
	shown := httptest.NewRecorder()
	registry.Handler().ServeHTTP(shown, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if want := `kube_queue_events_dropped_total{reason="Forbidden"} 1`; !strings.Contains(shown.Body.String(), want) {
		t.Errorf("%s is missing in\n%s", want, shown.Body)
	}
}

// The clock does not move, so nothing is retried.
func TestANamespaceThatRefusesEventsDelaysNoOther(t *testing.T) {
	client, clk := newFull("full"), clocktesting.NewFakeClock(noon)
	w, _ := run(t, client, clk, client.drop)
	const many = 5000
	for i := range many {
		e := about(fmt.Sprint("job-", i), "Released", "1")
		e.Object.Namespace = "full"
		w.Write(e)
	}
	for i := range 10 {
		w.Write(about(fmt.Sprint("job-", i), "Released", "1"))
	}
	require.Becomes(t, "the events of the other namespace are written", func() bool { return len(stored(t, client)) == 10 })
	if got := client.tries(); got > workers {
		t.Errorf("%d requests were sent for the namespace that refuses events, want at most %d", got, workers)
	}
	require.Becomes(t, "only some events wait", func() bool { return idle(w) && entries(w) <= maxRefused+workers })
	if kept, drops := entries(w), client.drops(); kept+drops != many || drops == 0 {
		t.Errorf("%d events wait and %d were dropped, of %d", kept, drops, many)
	}
}

func TestEventsWaitForANamespaceThatAcceptsThemAgain(t *testing.T) {
	client, clk := newFull("ns"), clocktesting.NewFakeClock(noon)
	w, _ := run(t, client, clk, client.drop)
	for i := range 20 {
		w.Write(about(fmt.Sprint("job-", i), "Released", "1"))
	}
	require.Becomes(t, "all wait", func() bool { return idle(w) && entries(w) == 20 })
	client.accept()
	pass(t, w, clk, 2*time.Second, time.Second)
	require.Becomes(t, "all are written", func() bool { return len(stored(t, client)) == 20 && entries(w) == 0 })
}

func TestAKeptEventWaitsAsLongAsItIsRefusedWithFewRequests(t *testing.T) {
	client, clk := newFull("ns"), clocktesting.NewFakeClock(noon)
	w, _ := run(t, client, clk, client.drop)
	const jobs = 10
	for i := range jobs {
		w.Keep(about(fmt.Sprint("job-", i), "Queued", "1"))
	}
	require.Becomes(t, "refused", func() bool { return client.tries() > 0 && idle(w) })
	pass(t, w, clk, 2*time.Hour, 10*time.Second)
	if got := client.tries(); got > 45 {
		t.Errorf("%d requests were sent in two hours", got)
	}
	if client.drops() > 0 || entries(w) != jobs {
		t.Errorf("%d kept events are left, and %d were dropped", entries(w), client.drops())
	}
	client.accept()
	pass(t, w, clk, refusals.Max, 10*time.Second)
	require.Becomes(t, "all are written", func() bool { return len(stored(t, client)) == jobs })
}
