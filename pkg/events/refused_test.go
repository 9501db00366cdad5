package events

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kube-queue.dev/kube-queue/pkg/metrics"
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

// pass lets time go by in a bubble of synctest, until all that is due is done.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestAnEventThatIsRefusedIsDroppedAfterSomeTriesAndCountedByItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newFull("ns")
		registry := metrics.New("thing", "v1")
		w, _ := run(t, client, registry.EventDropped)
		w.Write(about("job", "Released", "1"))
		pass(30 * time.Second)
		if got, left := client.tries(), entries(w); got != maxRefusals || left != 0 {
			t.Errorf("it was tried %d times, want %d, and %d events are left", got, maxRefusals, left)
		}
		shown := httptest.NewRecorder()
		registry.Handler().ServeHTTP(shown, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if want := `kube_queue_events_dropped_total{reason="Forbidden"} 1`; !strings.Contains(shown.Body.String(), want) {
			t.Errorf("%s is missing in\n%s", want, shown.Body)
		}
	})
}

// No time passes, so nothing is retried.
func TestANamespaceThatRefusesEventsDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newFull("full")
		w, _ := run(t, client, client.drop)
		const many = 5000
		for i := range many {
			e := about(fmt.Sprint("job-", i), "Released", "1")
			e.Object.Namespace = "full"
			w.Write(e)
		}
		for i := range 10 {
			w.Write(about(fmt.Sprint("job-", i), "Released", "1"))
		}
		synctest.Wait()
		if got := len(stored(t, client)); got != 10 {
			t.Errorf("%d of 10 events of the other namespace are written", got)
		}
		if got := client.tries(); got > workers {
			t.Errorf("%d requests were sent for the namespace that refuses events, want at most %d", got, workers)
		}
		if kept, drops := entries(w), client.drops(); kept+drops != many || kept > maxRefused+workers {
			t.Errorf("%d events wait and %d were dropped, of %d", kept, drops, many)
		}
	})
}

func TestEventsWaitForANamespaceThatAcceptsThemAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newFull("ns")
		w, _ := run(t, client, client.drop)
		for i := range 20 {
			w.Write(about(fmt.Sprint("job-", i), "Released", "1"))
		}
		synctest.Wait()
		if got := entries(w); got != 20 {
			t.Errorf("%d of 20 events wait", got)
		}
		client.accept()
		pass(2 * time.Second)
		if written, left := len(stored(t, client)), entries(w); written != 20 || left != 0 {
			t.Errorf("%d of 20 events are written, and %d are left", written, left)
		}
	})
}

func TestAKeptEventWaitsAsLongAsItIsRefusedWithFewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newFull("ns")
		w, _ := run(t, client, client.drop)
		const jobs = 10
		for i := range jobs {
			w.Keep(about(fmt.Sprint("job-", i), "Queued", "1"))
		}
		pass(2 * time.Hour)
		if got := client.tries(); got == 0 || got > 45 {
			t.Errorf("%d requests were sent in two hours", got)
		}
		if client.drops() > 0 || entries(w) != jobs {
			t.Errorf("%d kept events are left, and %d were dropped", entries(w), client.drops())
		}
		client.accept()
		pass(refusals.Max)
		if got := len(stored(t, client)); got != jobs {
			t.Errorf("%d of %d events are written", got, jobs)
		}
	})
}
