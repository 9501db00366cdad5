package lenient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/require"
)

// script answers requests one by one and records them.
type script struct {
	mu        sync.Mutex
	answers   []http.HandlerFunc
	requested []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	ask := fmt.Sprintf("list %s from %q, compressed as %s", query.Get("limit"), query.Get("continue"), r.Header.Get("Accept-Encoding"))
	if query.Get("watch") != "" {
		ask = "watch from " + query.Get("resourceVersion")
	} else if query.Has("resourceVersion") || query.Has("resourceVersionMatch") {
		ask += " at " + query.Get("resourceVersion")
	}
	if query.Has("sendInitialEvents") {
		ask += " with initial events"
	}
	s.mu.Lock()
	s.requested = append(s.requested, ask)
	answer := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	if len(s.answers) > 0 {
		answer, s.answers = s.answers[0], s.answers[1:]
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	answer(w, r)
}

func says(format string, args ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, format, args...) }
}

const expired = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Expired","code":410}`

func TestAnInformerListsWhatIsThereWhateverFailsOrCannotBeDecoded(t *testing.T) {
	s := &script{answers: []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { // the connection breaks
			fmt.Fprintf(w, `{"items":[%s,`, named("a", "1"))
			control := http.NewResponseController(w)
			if err := control.Flush(); err != nil {
				t.Error(err)
			}
			connection, _, err := control.Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = connection.Close()
		},
		says(`{"metadata":{"resourceVersion":"5","continue":"more"},"items":[%s]}`, named("a", "1")),
		func(w http.ResponseWriter, _ *http.Request) { // the server has forgotten the version
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, expired)
		},
		says(`{"metadata":{"resourceVersion":"6","continue":"more"},"items":[%s]}`, named("a", "1")),
		says(`{"metadata":{"resourceVersion":"6"},"items":[%s]}`, named("b", `"1e1.5"`)),
		says(`{"type":"ADDED","object":%s}{"type":"ERROR","object":%s}`, named("c", `"1e1.5"`), expired),
		says(`{"items":[%s],"metadata":{"resourceVersion":"9"}}`, named("b", `"1e1.5"`)),
	}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := NewForConfig(&rest.Config{Host: server.URL, QPS: -1}, unitKind)
	require.NoError(t, err)
	results := make(chan error, 100)
	informer, err := Informer(client, func(err error) { results <- err }, "queueunits", cache.Indexers{}, func(o any) (any, error) {
		o.(Object).SetManagedFields(nil)
		return o, nil
	})
	require.NoError(t, err)
	shown := func(o any) string {
		return fmt.Sprintf("%s %T %d", o.(Object).GetName(), o, len(o.(Object).GetManagedFields()))
	}
	reported := make(chan string, 100)
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { reported <- "+" + shown(o) },
		DeleteFunc: func(o any) {
			if unknown, is := o.(cache.DeletedFinalStateUnknown); is {
				o = unknown.Obj
			}
			reported <- "-" + shown(o)
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go informer.RunWithContext(ctx)
	var got []string
	for range 5 {
		select {
		case one := <-reported:
			got = append(got, one)
		case <-ctx.Done():
			t.Fatalf("it reported only of %q", got)
		}
	}
	for i, fails := range []bool{true, true, false, false, false} { // a list, again, again, a watch, a list
		if err := <-results; (err != nil) != fails {
			t.Errorf("result %d is reported as %v", i, err)
		}
	}
	slices.Sort(got[:2])
	slices.Sort(got[3:])
	if want := []string{"+a *v1alpha1.QueueUnit 0", "+b *lenient.Unreadable 0", "+c *lenient.Unreadable 0",
		"-a *v1alpha1.QueueUnit 0", "-c *lenient.Unreadable 0"}; !slices.Equal(got, want) {
		t.Errorf("it reported %q, want %q", got, want)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	want := []string{
		`list 100000 from "", compressed as identity`,
		`list 10000 from "", compressed as identity`,
		`list 10000 from "more", compressed as identity`,
		`list 1000 from "", compressed as identity`,
		`list 1000 from "more", compressed as identity`,
		"watch from 6",
		`list 100000 from "", compressed as identity`,
	}
	if got := s.requested[:min(len(want), len(s.requested))]; !slices.Equal(got, want) {
		t.Errorf("it requested %q, want %q", got, want)
	}
}

// lister lists units with these names.
type lister struct {
	Lister
	names []string
}

func (l lister) Each(_ context.Context, _ string, _ metav1.ListOptions, each func(Object) error) (metav1.ListMeta, error) {
	for _, name := range l.names {
		if err := each(&schedulingv1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return metav1.ListMeta{ResourceVersion: "5"}, nil
}

func TestWhatIsListedIsTransformedAsItComes(t *testing.T) {
	broken := errors.New("broken")
	transform := func(o any) (any, error) {
		unit := o.(*schedulingv1alpha1.QueueUnit)
		if unit.Name == "bad" {
			return nil, broken
		}
		unit.Name += "'"
		return unit, nil
	}
	list, err := newest(lister{names: []string{"a", "b"}}, transform)(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var names []string
	for _, item := range list.(*metainternalversion.List).Items {
		names = append(names, item.(Object).GetName())
	}
	if want := []string{"a'", "b'"}; !slices.Equal(names, want) || list.(*metainternalversion.List).ResourceVersion != "5" {
		t.Errorf("it lists %q, want %q, of version %s", names, want, list.(*metainternalversion.List).ResourceVersion)
	}
	if _, err := newest(lister{names: []string{"a", "bad"}}, transform)(t.Context(), metav1.ListOptions{}); !errors.Is(err, broken) {
		t.Errorf("a fault of the transform is reported as %v", err)
	}
}

func TestAListThatIsGivenUpIsNotSentOn(t *testing.T) {
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"items":[%s,`, named("a", "1"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(ended)
	}))
	t.Cleanup(server.Close)
	client, err := NewForConfig(&rest.Config{Host: server.URL, QPS: -1}, unitKind)
	require.NoError(t, err)
	broken := errors.New("broken")
	if _, err := client.Each(t.Context(), "", metav1.ListOptions{}, func(Object) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the answer is still awaited")
	}
}
