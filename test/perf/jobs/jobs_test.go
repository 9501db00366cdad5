package jobs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/test/perf/wire"
)

func TestParseQueue(t *testing.T) {
	for text, want := range map[string]Queue{
		"none":                      {Name: "none"},
		"kube-queue":                {Name: "kube-queue"},
		"label:example.com/q=fast":  {Name: "label:example.com/q=fast", key: "example.com/q", value: "fast"},
		"label:example.com/q=a=b=c": {Name: "label:example.com/q=a=b=c", key: "example.com/q", value: "a=b=c"},
	} {
		if got, err := ParseQueue(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "other", "label:", "label:key", "label:=value", "label:key="} {
		if _, err := ParseQueue(text); err == nil || !strings.Contains(err.Error(), "known queues: none, kube-queue and label:KEY=VALUE") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestJobsDifferOnlyInTheMarkOfTheirQueue(t *testing.T) {
	read := func(text string) (job object, suspend bool, annotations, labels any) {
		t.Helper()
		queue, err := ParseQueue(text)
		if err != nil {
			t.Fatal(err)
		}
		data, err := queue.job("one", 300*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &job); err != nil {
			t.Fatal(err)
		}
		metadata, spec := job["metadata"].(object), job["spec"].(object)
		suspend, annotations, labels = spec["suspend"].(bool), metadata["annotations"], metadata["labels"]
		delete(spec, "suspend")
		delete(metadata, "annotations")
		delete(metadata, "labels")
		return job, suspend, annotations, labels
	}
	plain, suspend, annotations, labels := read("none")
	if suspend || annotations != nil || labels != nil {
		t.Errorf("a job of none is marked: %v %v %v", suspend, annotations, labels)
	}
	ours, suspend, annotations, labels := read("kube-queue")
	if !suspend || !reflect.DeepEqual(annotations, object{"scheduling.x-k8s.io/suspend": "true"}) || labels != nil || !reflect.DeepEqual(ours, plain) {
		t.Errorf("a job of kube-queue: %v %v %v", suspend, annotations, labels)
	}
	other, suspend, annotations, labels := read("label:q=fast")
	if !suspend || annotations != nil || !reflect.DeepEqual(labels, object{"q": "fast"}) || !reflect.DeepEqual(other, plain) {
		t.Errorf("a job of another queue: %v %v %v", suspend, annotations, labels)
	}
}

// server returns a client of a fake API server.
func server(t *testing.T, handler http.HandlerFunc) *wire.Client {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	c, err := wire.New(&rest.Config{Host: s.URL}, "perf")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func row(kind, name, status, columns string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Table","columnDefinitions":%s,"rows":[{"cells":[%q,%q,"1/1"],"object":null}]}}`+"\n", kind, columns, name, status)
}

func TestEachJobIsCountedOnceIfTheWatchBreaks(t *testing.T) {
	const columns = `[{"name":"Name"},{"name":"Status"},{"name":"Completions"}]`
	var mu sync.Mutex
	asked := 0
	client := server(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if asked++; !strings.Contains(r.Header.Get("Accept"), "as=Table") || r.URL.Query().Get("fieldSelector") != "status.successful=1" {
			t.Errorf("it requests %s %s", r.Header.Get("Accept"), r.URL)
		}
		fmt.Fprint(w, row("ADDED", "a", "Complete", columns))
		if asked == 2 {
			fmt.Fprint(w, row("MODIFIED", "a", "Complete", "null")+row("ADDED", "b", "Running", "null")+
				row("ADDED", "other", "Complete", "null")+row("DELETED", "c", "Complete", "null")+row("MODIFIED", "b", "Complete", "null"))
		}
		if asked == 3 {
			fmt.Fprint(w, row("ADDED", "c", "Complete", "null"))
		}
	})
	e := newEnds(client, []string{"a", "b", "c"})
	if err := e.watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, last, _ := e.state(); left != 0 || last.IsZero() || asked != 3 {
		t.Errorf("%d are left after %d watches", left, asked)
	}
}

func TestErrorOfAFailedWatch(t *testing.T) {
	for want, answer := range map[string]http.HandlerFunc{
		"has no columns Name and Status": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, row("ADDED", "a", "Complete", "null"))
		},
		"too old": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"type":"ERROR","object":{"kind":"Status","message":"too old"}}`)
		},
		"403: not you": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "not you")
		},
	} {
		e := newEnds(server(t, answer), []string{"a", "b"})
		if err := e.watch(t.Context()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), Namespace) {
			t.Errorf("got %v, want %s", err, want)
		}
		if left, _, example := e.state(); left != 2 || example != "a" {
			t.Errorf("%d are left, as %s", left, example)
		}
	}
}

func TestEachJobIsCreatedOnce(t *testing.T) {
	var mu sync.Mutex
	created := map[string]int{}
	client := server(t, func(w http.ResponseWriter, r *http.Request) {
		var job struct{ Metadata struct{ Name string } }
		if err := json.NewDecoder(r.Body).Decode(&job); err != nil || r.Method != http.MethodPost || r.URL.Path != jobsPath {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		mu.Lock()
		defer mu.Unlock()
		created[job.Metadata.Name]++
		w.WriteHeader(http.StatusCreated)
	})
	all := names("job-1-", 100)
	var count atomic.Int64
	b := &Bench{client: client}
	if first, err := b.submit(t.Context(), Queue{Name: None}, all, 10_000, &count); err != nil || first.IsZero() || count.Load() != 100 || len(created) != 100 {
		t.Errorf("%d of %d created: %v", count.Load(), len(created), err)
	}
	for _, name := range all {
		if created[name] != 1 {
			t.Errorf("%s was created %d times", name, created[name])
		}
	}
}

func TestRefusedCreateEndsTheSubmission(t *testing.T) {
	client := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "no such namespace")
	})
	var count atomic.Int64
	b := &Bench{client: client}
	if _, err := b.submit(t.Context(), Queue{Name: None}, names("job-1-", 1000), 0, &count); err == nil || !strings.Contains(err.Error(), "no such namespace") || count.Load() != 0 {
		t.Errorf("got %v with %d created", err, count.Load())
	}
}

func TestCommandIsNamedAfterItsProgram(t *testing.T) {
	got, err := commandNames([]string{"/opt/queue/manager --zap", "QPS=5 exec ./queue", "manager --webhooks", "queue"})
	if want := []string{"manager", "queue", "manager-2", "queue-2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := commandNames([]string{"queue", "A=B "}); err == nil || !strings.Contains(err.Error(), `--with "A=B "`) {
		t.Errorf("got %v", err)
	}
}

func TestObjectsAreDeletedInBatches(t *testing.T) {
	left := 1200
	client := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != podsPath {
			t.Errorf("it requests %s", r.URL)
		}
		if r.Method == http.MethodDelete {
			batch, err := strconv.Atoi(r.URL.Query().Get("limit"))
			if err != nil {
				t.Error(err)
			}
			left -= min(left, batch)
			return
		}
		if left == 0 {
			fmt.Fprint(w, `{"items":[]}`)
			return
		}
		fmt.Fprintf(w, `{"metadata":{"remainingItemCount":%d},"items":[{}]}`, left-1)
	})
	b := &Bench{client: client}
	if n, err := b.left(t.Context(), podsPath); n != 1200 || err != nil {
		t.Errorf("%d are left, %v", n, err)
	}
	if err := b.deleteAll(t.Context(), podsPath); err != nil || left != 0 {
		t.Errorf("%d are left, %v", left, err)
	}
}
