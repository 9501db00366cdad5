package lenient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var (
	goodText = strings.ReplaceAll(unitText(`,"resource":{"cpu":1}`, ""), `"name":"a"`, `"name":"good"`)
	badText  = strings.ReplaceAll(unitText(`,"resource":{"cpu":"1e1.5"}`, ""), `"name":"a"`, `"name":"bad"`)
)

// server answers as an API server.
func server(t *testing.T, events ...string) *Client {
	t.Helper()
	handler := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		switch {
		case r.Header.Get("Accept") != "application/json":
			http.Error(w, "not acceptable", http.StatusNotAcceptable)
		case query.Get("sendInitialEvents") != "", (query.Get("watch") != "") != (query.Get("resourceVersion") == "5"):
			http.Error(w, "not a list of what there is now, or a watch from there on", http.StatusBadRequest)
		case query.Get("watch") != "":
			for _, event := range events {
				fmt.Fprintln(w, event)
			}
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case strings.HasSuffix(r.URL.Path, "/queueunits") && query.Get("continue") == "":
			fmt.Fprintf(w, `{"kind":"QueueUnitList","metadata":{"resourceVersion":"5","continue":"second"},"items":[%s]}`, goodText)
		case strings.HasSuffix(r.URL.Path, "/queueunits") && query.Get("continue") == "second":
			fmt.Fprintf(w, `{"kind":"QueueUnitList","metadata":{"resourceVersion":"5"},"items":[%s]}`, badText)
		case strings.HasSuffix(r.URL.Path, "/namespaces/ns/queueunits/bad"), r.Method == http.MethodPatch:
			if body, _ := io.ReadAll(r.Body); r.Method == http.MethodPatch &&
				(string(body) != "{}" || r.Header.Get("Content-Type") != "application/merge-patch+json" || !strings.HasSuffix(r.URL.Path, "/bad/status")) {
				http.Error(w, "another patch", http.StatusBadRequest)
				return
			}
			fmt.Fprint(w, badText)
		case strings.HasSuffix(r.URL.Path, "/namespaces/unserved/queueunits/bad"):
			http.NotFound(w, r) // as for a kind that the server does not know
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		}
	}
	s := httptest.NewServer(http.HandlerFunc(handler))
	t.Cleanup(s.Close)
	client, err := NewForConfig(&rest.Config{Host: s.URL, QPS: -1}, unitKind)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestOneIsReadAndPatchedThoughItCannotBeDecoded(t *testing.T) {
	client := server(t)
	for what, ask := range map[string]func() (Object, error){
		"get":   func() (Object, error) { return client.Get(t.Context(), "ns", "bad") },
		"patch": func() (Object, error) { return client.Patch(t.Context(), "ns", "bad", []byte("{}"), "status") },
	} {
		object, err := ask()
		if err != nil {
			t.Fatal(what, err)
		}
		if _, isBad := object.(*Unreadable); !isBad || object.GetResourceVersion() != "7" {
			t.Errorf("%s: %+v", what, object)
		}
	}
	if version, err := client.PatchVersion(t.Context(), "ns", "bad", []byte("{}"), "status"); err != nil || version != "7" {
		t.Errorf("patched to version %q, error %v", version, err)
	}
	if _, err := client.Get(t.Context(), "ns", "none"); !apierrors.IsNotFound(err) {
		t.Errorf("one that is not there: %v", err)
	}
}

// Both are 404. That a kind is not served says nothing of whether an object of it
// is still stored.
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

func TestAWatchGoesOnAfterAnObjectThatCannotBeDecoded(t *testing.T) {
	client := server(t, `{"type":"ADDED","object":`+badText+`}`, `{"type":"MODIFIED","object":`+goodText+`}`,
		`{"type":"BOOKMARK","object":{"kind":"QueueUnit","apiVersion":"scheduling.x-k8s.io/v1alpha1","metadata":{"resourceVersion":"8"}}}`,
		`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`)
	watcher, err := client.Watch(t.Context(), metav1.NamespaceAll, metav1.ListOptions{ResourceVersion: "5"})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	var types []string
	for event := range watcher.ResultChan() {
		types = append(types, fmt.Sprintf("%s %T", event.Type, event.Object))
		if event.Type == watch.Error {
			if !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
				t.Errorf("the error is %v", event.Object)
			}
			break
		}
	}
	want := []string{"ADDED *lenient.Unreadable", "MODIFIED *v1alpha1.QueueUnit", "BOOKMARK *v1alpha1.QueueUnit", "ERROR *v1.Status"}
	if !slices.Equal(types, want) {
		t.Errorf("it reported %q, want %q", types, want)
	}
}

func TestAnInformerHoldsWhatCannotBeDecoded(t *testing.T) {
	added := strings.ReplaceAll(badText, `"name":"bad"`, `"name":"later"`)
	client := server(t, `{"type":"ADDED","object":`+added+`}`)
	informer, err := Informer(client, func(error) {}, "queueunits", cache.Indexers{}, func(obj any) (any, error) {
		obj.(Object).SetLabels(nil)
		return obj, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	reported := make(chan string, 10)
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		reported <- fmt.Sprintf("%s %T %d", obj.(Object).GetName(), obj, len(obj.(Object).GetLabels()))
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go informer.RunWithContext(ctx)
	var found []string
	for range 3 {
		select {
		case one := <-reported:
			found = append(found, one)
		case <-ctx.Done():
			t.Fatalf("it reported only of %q", found)
		}
	}
	slices.Sort(found)
	if want := []string{"bad *lenient.Unreadable 0", "good *v1alpha1.QueueUnit 0", "later *lenient.Unreadable 0"}; !slices.Equal(found, want) {
		t.Errorf("it reported %q, want %q", found, want)
	}
}
