package events

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/pkg/metrics"
)

// full is a client whose API server forbids new events in one namespace, as an admission policy may.
type full struct {
	*fake.Clientset
	mu      sync.Mutex
	refuses string
	// tried are the names of the objects whose events were refused.
	tried []string
	// dropped are the reasons of the events that were given up.
	dropped []string
}

func newFull(namespace string) *full {
	f := &full{Clientset: fake.NewClientset(), refuses: namespace}
	f.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if action.GetNamespace() != f.refuses {
			return false, nil, nil
		}
		event := action.(clienttesting.CreateAction).GetObject().(*corev1.Event)
		f.tried = append(f.tried, event.InvolvedObject.Name)
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, event.Name, errors.New("no events here"))
	})
	return f
}

func (f *full) accept() { f.set(func() { f.refuses = "" }) }

func (f *full) drop(reason string) {
	f.set(func() { f.dropped = append(f.dropped, reason) })
}

func (f *full) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *full) tries() int { f.mu.Lock(); defer f.mu.Unlock(); return len(f.tried) }

func (f *full) drops() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.dropped)
}

func TestDroppedEventsAreCountedByTheirReason(t *testing.T) {
	client, clk := newFull("ns"), clocktesting.NewFakeClock(noon)
	registry := metrics.New("thing", "v1")
	w := started(t, client.Clientset, clk, registry.EventDropped)
	w.Write(about("job", "Released", "1"))
	eventually(t, "refused", func() bool { return client.tries() == 1 })
	pass(t, w, clk, 30*time.Second, time.Second)
	shown := httptest.NewRecorder()
	registry.Handler().ServeHTTP(shown, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if want := `kube_queue_events_dropped_total{reason="Forbidden"} 1`; !strings.Contains(shown.Body.String(), want) {
		t.Errorf("%s is missing in\n%s", want, shown.Body)
	}
}

func (f *full) start(t *testing.T, clk *clocktesting.FakeClock) *Writer {
	t.Helper()
	return started(t, f.Clientset, clk, f.drop)
}

// pass lets the time pass in steps, and after each step waits until all that is due is done. If the clock
// moves while the work queue computes a timer from it, that timer is late by a step. So after many
// looks in vain the clock moves on.
func pass(t *testing.T, w *Writer, clk *clocktesting.FakeClock, whole, step time.Duration) {
	t.Helper()
	until := func(what string, ok func() bool) {
		t.Helper()
		looks := 0
		eventually(t, what, func() bool {
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

// idle reports whether the writer has nothing to do before a time comes.
func idle(w *Writer) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	for key, entry := range w.entries {
		refusal := w.refusing[key.Namespace]
		refused := refusal != nil && entry.waits && now.Before(refusal.Until)
		paced := entry.written && (entry.more == 0 || now.Before(entry.paced.Until))
		if !refused && !paced {
			return false
		}
	}
	return w.queue.Len() == 0
}

func TestAnEventThatIsRefusedIsDroppedAfterSomeTriesAndCounted(t *testing.T) {
	client, clk := newFull("ns"), clocktesting.NewFakeClock(noon)
	w := client.start(t, clk)
	w.Write(about("job", "Released", "1"))
	eventually(t, "refused", func() bool { return client.tries() == 1 })
	pass(t, w, clk, 30*time.Second, time.Second)
	if got, drops := client.tries(), client.drops(); got != maxRefusals || !slices.Equal(drops, []string{"Forbidden"}) {
		t.Errorf("it was tried %d times and dropped because of %v, want %d tries and one drop", got, drops, maxRefusals)
	}
	if left := entries(w); left != 0 {
		t.Errorf("%d events are left", left)
	}
}

func TestAnEventThatIsRejectedForGoodIsDroppedAtOnceAndCounted(t *testing.T) {
	client, clk := newFull(""), clocktesting.NewFakeClock(noon)
	client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "e", errors.New("the namespace is being terminated"))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		return true, nil, err
	})
	w := client.start(t, clk)
	w.Write(about("job", "Released", "1"))
	eventually(t, "dropped", func() bool { return entries(w) == 0 })
	if drops := client.drops(); len(drops) != 1 {
		t.Errorf("it was counted as %v", drops)
	}
}

// The time does not pass, so nothing is tried for a second time.
func TestANamespaceThatRefusesEventsDelaysNoOther(t *testing.T) {
	client, clk := newFull("full"), clocktesting.NewFakeClock(noon)
	w := client.start(t, clk)
	const many = 5000
	for i := range many {
		e := about(fmt.Sprint("job-", i), "Released", "1")
		e.Object.Namespace = "full"
		w.Write(e)
	}
	for i := range 10 {
		w.Write(about(fmt.Sprint("job-", i), "Released", "1"))
	}
	eventually(t, "the events of the other namespace are written", func() bool { return len(stored(t, client.Clientset)) == 10 })
	if got := client.tries(); got > workers {
		t.Errorf("%d requests were sent for the namespace that refuses events, want at most %d", got, workers)
	}
	eventually(t, "only some events wait", func() bool { return idle(w) && entries(w) <= maxRefused+workers })
	if kept, drops := entries(w), len(client.drops()); kept+drops != many || drops == 0 {
		t.Errorf("%d events wait and %d were dropped, of %d", kept, drops, many)
	}
}

func TestEventsWaitForANamespaceThatAcceptsThemAgain(t *testing.T) {
	client, clk := newFull("ns"), clocktesting.NewFakeClock(noon)
	w := client.start(t, clk)
	for i := range 20 {
		w.Write(about(fmt.Sprint("job-", i), "Released", "1"))
	}
	eventually(t, "all wait", func() bool { return idle(w) && entries(w) == 20 })
	client.accept()
	pass(t, w, clk, 2*time.Second, time.Second)
	eventually(t, "all are written", func() bool { return len(stored(t, client.Clientset)) == 20 && entries(w) == 0 })
}

func TestAKeptEventWaitsAsLongAsItIsRefusedWithFewRequests(t *testing.T) {
	client, clk := newFull("ns"), clocktesting.NewFakeClock(noon)
	w := client.start(t, clk)
	const jobs = 10
	for i := range jobs {
		w.Keep(about(fmt.Sprint("job-", i), "Queued", "1"))
	}
	eventually(t, "refused", func() bool { return client.tries() > 0 && idle(w) })
	pass(t, w, clk, 2*time.Hour, 10*time.Second)
	if got := client.tries(); got > 45 {
		t.Errorf("%d requests were sent in two hours", got)
	}
	if len(client.drops()) > 0 || entries(w) != jobs {
		t.Errorf("%d kept events are left, and %d were dropped", entries(w), len(client.drops()))
	}
	client.accept()
	pass(t, w, clk, refusals.Max, 10*time.Second)
	eventually(t, "all are written", func() bool { return len(stored(t, client.Clientset)) == jobs })
}

func entries(w *Writer) int { w.mu.Lock(); defer w.mu.Unlock(); return len(w.entries) }
