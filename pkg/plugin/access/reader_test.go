package access

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/test/require"
)

// A cluster can have any number of units, and what a page reads of them is in memory.
func TestAPageReadsOnlySoManyUnits(t *testing.T) {
	const unit = `{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": {"namespace": "n", "name": "u"}, "status": {"phase": "Enqueued"}}`
	var lists atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/queueunits/u"):
			fmt.Fprint(w, unit)
		case strings.HasSuffix(r.URL.Path, "/queueunits"):
			next := "more"
			if lists.Add(1) == 50 { // without a bound, the reading ends here
				next = ""
			}
			fmt.Fprintf(w, `{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnitList", "metadata": {"continue": %q}, "items": [%s]}`,
				next, strings.Repeat(unit+",", PageSize-1)+unit)
		case strings.HasSuffix(r.URL.Path, "/events"):
			fmt.Fprint(w, `{"apiVersion": "v1", "kind": "EventList", "items": []}`)
		case strings.HasSuffix(r.URL.Path, "/elasticquotatrees"):
			fmt.Fprint(w, `{"apiVersion": "scheduling.sigs.k8s.io/v1beta1", "kind": "ElasticQuotaTreeList", "items": []}`)
		default: // no reviews
			http.Error(w, "404 page not found", http.StatusNotFound)
		}
	}))
	defer server.Close()
	c, err := New(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	c.Now, c.ErrOut = time.Now, io.Discard
	r := c.NewReader()
	_, err = r.Job(t.Context(), "n", "u")
	require.NoError(t, err)
	if said := strings.Join(r.Warnings(), "\n"); lists.Load() > mostOfObjects/PageSize+1 || !strings.Contains(said, "too many units") {
		t.Errorf("a page of a job has read %d lists, and says %q", lists.Load(), said)
	}
	lists.Store(0)
	c.MostUnits = 2 * PageSize
	if _, err := (&Question{Cluster: c}).completeUnits(t.Context()); lists.Load() > 3 || err == nil || !strings.Contains(err.Error(), "run kubectl kube-queue simulate") {
		t.Errorf("a page that tries a tree has read %d lists: %v", lists.Load(), err)
	}
}
