package unitcrd

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/require"
)

// schemas fakes the schemas of an API server. It answers each request with the next one, and repeats the last one. An
// empty one has nothing for our group, and "unpublished" is an API server without schemas.
type schemas struct {
	next  []string
	asked atomic.Int32
}

func (s *schemas) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path != "/openapi/v3" {
		_, _ = w.Write([]byte(s.next[min(int(s.asked.Load()), len(s.next))-1]))
		return
	}
	switch now := s.next[min(int(s.asked.Add(1)), len(s.next))-1]; now {
	case "unpublished":
		http.NotFound(w, req)
	case "":
		_, _ = w.Write([]byte(`{"paths": {"apis/batch/v1": {"serverRelativeURL": "/openapi/v3/apis/batch/v1"}}}`))
	default:
		_, _ = w.Write([]byte(`{"paths": {"` + unitOpenAPI + `": {"serverRelativeURL": "/openapi/v3/` + unitOpenAPI + `"}}}`))
	}
}

// schemaOf returns the schema of a kind with these fields.
func schemaOf(t *testing.T, kind string, spec, status []string, subresource bool) string {
	t.Helper()
	properties := func(names []string) any {
		known := map[string]any{}
		for _, name := range names {
			known[name] = map[string]string{"type": "string"}
		}
		return map[string]any{"properties": known}
	}
	paths := map[string]any{}
	if subresource {
		paths["/"+unitOpenAPI+"/namespaces/{namespace}/queueunits/{name}/status"] = map[string]any{}
	}
	doc, err := json.Marshal(map[string]any{"paths": paths, "components": map[string]any{"schemas": map[string]any{
		"kind": map[string]any{
			"x-kubernetes-group-version-kind": []any{map[string]string{"kind": kind}},
			"properties":                      map[string]any{"spec": properties(spec), "status": properties(status)},
		},
		"io.k8s.meta": map[string]any{"properties": map[string]any{}},
	}}})
	require.NoError(t, err)
	return string(doc)
}

func TestTheUnitsOfTheClusterMustBeOurs(t *testing.T) {
	spec, status := fields(reflect.TypeFor[schedulingv1alpha1.QueueUnitSpec]()), fields(reflect.TypeFor[schedulingv1alpha1.QueueUnitStatus]())
	ours := schemaOf(t, "QueueUnit", spec, status, true)
	older := slices.DeleteFunc(slices.Clone(spec), func(name string) bool { return name == "preemptible" })
	tests := []struct {
		name    string
		schemas []string
		// asked is the number of requests, and says are parts of the error; empty for no error.
		asked int
		says  []string
	}{
		{"ours", []string{ours}, 1, nil},
		{"ours with fields of a later release", []string{schemaOf(t, "QueueUnit", append(spec, "later"), status, true)}, 1, nil},
		{"waited for while there is none", []string{"", "", ours}, 3, nil},
		{"waited for while there is only another kind of ours", []string{schemaOf(t, "Queue", nil, nil, true), ours}, 2, nil},
		{"another system's", []string{schemaOf(t, "QueueUnit", []string{"consumerRef", "priority", "queue"}, []string{"phase"}, true)}, 1,
			[]string{unitCRD, "spec.podSets", "spec.submissionTime", "status.reason", "kubectl delete crd"}},
		{"an older release's", []string{schemaOf(t, "QueueUnit", older, status, true)}, 1, []string{"it lacks spec.preemptible;"}},
		{"without a subresource", []string{schemaOf(t, "QueueUnit", spec, status, false)}, 1, []string{"the subresource status"}},
		{"one that is not ours after some waiting", []string{"", schemaOf(t, "QueueUnit", nil, nil, true)}, 2, []string{"spec.consumerRef"}},
		{"not checked where nothing is published", []string{"unpublished"}, 1, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			published := &schemas{next: test.schemas}
			server := httptest.NewServer(published)
			defer server.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			err := Await(ctx, &rest.Config{Host: server.URL})
			if failed := err != nil; failed != (len(test.says) > 0) {
				t.Fatalf("error %v, want one that says %v", err, test.says)
			}
			require.Says(t, "the error", fmt.Sprint(err), test.says...)
			if asked := int(published.asked.Load()); asked != test.asked {
				t.Errorf("asked %d times, want %d", asked, test.asked)
			}
		})
	}
}
