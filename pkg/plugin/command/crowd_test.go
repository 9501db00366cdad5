package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkListWithoutReviews lists 100,000 units of the size that they have in clusters, without the help of
// kube-queue-controller.
func BenchmarkListWithoutReviews(b *testing.B) {
	const all = 100_000
	owned := strings.Repeat(`{"apiVersion":"scheduling.x-k8s.io/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:phase":{},"f:queue":{}}},"manager":"m","operation":"Update"},`, 8)
	item := func(i int) string {
		return fmt.Sprintf(`{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"QueueUnit","metadata":{"creationTimestamp":"2026-01-01T11:00:00Z","managedFields":[%s],"name":"train-%06d-job-d81b48fe5d","namespace":"research","resourceVersion":"%d","uid":"%d"},
"spec":{"active":true,"consumerRef":{"apiVersion":"batch/v1","kind":"Job","name":"train-%06d","namespace":"research","uid":"x"},"podSets":[{"count":1,"name":"main","requests":{"cpu":"1"}}],"preemptible":true,"priority":0,"resource":{"cpu":"1"},"submissionTime":"2026-01-01T11:00:00.000000Z"},
"status":{"message":"insufficient cpu in quota company/research: requested 1, used 12 of max 12","phase":"Enqueued","queue":"company-research","quota":"company/research","reason":"QuotaExceeded"}}`, owned[:len(owned)-1], i, i, i, i)
	}
	pages := make([]string, all/pageSize)
	for p := range pages {
		items := make([]string, pageSize)
		for i := range items {
			items[i] = item(p*pageSize + i)
		}
		next := ""
		if p+1 < len(pages) {
			next = strconv.Itoa(p + 1)
		}
		pages[p] = fmt.Sprintf(`{"apiVersion":"scheduling.x-k8s.io/v1alpha1","items":[%s],"kind":"QueueUnitList","metadata":{"continue":%q,"resourceVersion":"1"}}`, strings.Join(items, ","), next)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/queueunits") {
			http.NotFound(w, r)
			return
		}
		at, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, pages[at])
	}))
	defer server.Close()
	kubeconfig := kubeconfigOf(b, server.URL)
	for b.Loop() {
		code, out, errs := execute(b, b.Context(), terminal{}, kubeconfig, "list")
		if code != 0 || !strings.Contains(out, "100000") {
			b.Fatalf("exit status %d\n%s%s", code, out, errs)
		}
	}
}
