package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/test/perf/scenario"
	"kube-queue.dev/kube-queue/test/perf/trail"
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
		data, err := queue.job("a", "one", 300*time.Millisecond)
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

func at(ms int) time.Time { return time.Date(2026, 1, 2, 3, 4, 5, ms*1e6, time.UTC) }

func TestDelaysStartAtTheResponseToTheCreate(t *testing.T) {
	job := func(verb, name string, suspended bool, ms, code int) *trail.Entry {
		return &trail.Entry{Agent: "a", Verb: verb, Group: "batch", Resource: "jobs", Namespace: Namespace, Name: name, Code: code, Answered: at(ms), Whole: code < 300, Suspended: suspended}
	}
	pod := func(name, owner string, ms int) *trail.Entry {
		return &trail.Entry{Agent: "b", Verb: "create", Resource: "pods", Namespace: Namespace, Name: name, Code: 201, Answered: at(ms), Whole: true, Owner: owner}
	}
	bound := func(name string, ms int) *trail.Entry {
		return &trail.Entry{Agent: "c", Verb: "create", Resource: "pods", Subresource: "binding", Namespace: Namespace, Name: name, Code: 201, Answered: at(ms)}
	}
	status := job("update", "job-1-a", false, 5, 200)
	status.Subresource, status.Whole = "status", false
	elsewhere := job("create", "job-1-x", true, 1, 201)
	elsewhere.Namespace = "default"
	d := newDiary(Namespace, "job-1-")
	for _, e := range []*trail.Entry{
		job("create", "job-1-a", true, 0, 201),
		status,
		job("patch", "job-1-a", false, 10, 409),  // refused
		job("patch", "job-1-a", true, 15, 200),   // still held
		job("patch", "job-1-a", false, 20, 200),  // released
		job("patch", "job-1-a", false, 300, 200), // another change, later
		bound("job-1-a-x", 60),                   // before the entry with the pod's owner
		pod("job-1-a-x", "job-1-a", 50),
		pod("job-1-a-y", "job-1-a", 200), // a second pod
		bound("job-1-a-y", 210),
		job("create", "job-1-b", false, 100, 201), // never held
		pod("job-1-b-x", "job-1-b", 130),
		job("create", "warm-1-a", true, 0, 201), // does not count
		job("patch", "warm-1-a", false, 1, 200),
		pod("warm-1-a-x", "warm-1-a", 2),
		elsewhere,
	} {
		d.see(e)
	}
	got := d.delays()
	for _, times := range [][]time.Duration{got.Release, got.Pod, got.Bound} {
		slices.Sort(times)
	}
	ms := time.Millisecond
	want := Delays{Release: []time.Duration{20 * ms}, Pod: []time.Duration{30 * ms, 50 * ms}, Bound: []time.Duration{60 * ms}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if done, refused := d.counts.Sum(func(trail.Kind) bool { return true }); done != 15 || refused != 1 {
		t.Errorf("counted %d writes and %d refused", done, refused)
	}
}

// server returns an api for a fake API server.
func server(t *testing.T, handler http.HandlerFunc) *api {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	a, err := newAPI(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func row(kind, name, status, columns string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Table","columnDefinitions":%s,"rows":[{"cells":[%q,%q,"1/1"],"object":null}]}}`+"\n", kind, columns, name, status)
}

func TestEachJobIsCountedOnceIfTheWatchBreaks(t *testing.T) {
	const columns = `[{"name":"Name"},{"name":"Status"},{"name":"Completions"}]`
	var mu sync.Mutex
	asked := 0
	api := server(t, func(w http.ResponseWriter, r *http.Request) {
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
	e := newEnds(api, Namespace, []string{"a", "b", "c"})
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
		e := newEnds(server(t, answer), Namespace, []string{"a", "b"})
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
	api := server(t, func(w http.ResponseWriter, r *http.Request) {
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
	s := &submission{api: api, namespace: Namespace, queue: Queue{Name: None}, every: 100 * time.Microsecond}
	first, err := s.run(t.Context(), all)
	if err != nil || first.IsZero() || s.created.Load() != 100 || len(created) != 100 {
		t.Errorf("%d of %d created: %v", s.created.Load(), len(created), err)
	}
	for _, name := range all {
		if created[name] != 1 {
			t.Errorf("%s was created %d times", name, created[name])
		}
	}
}

func TestRefusedCreateEndsTheSubmission(t *testing.T) {
	api := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "no such namespace")
	})
	s := &submission{api: api, namespace: Namespace, queue: Queue{Name: None}}
	if _, err := s.run(t.Context(), names("job-1-", 1000)); err == nil || !strings.Contains(err.Error(), "no such namespace") || s.created.Load() != 0 {
		t.Errorf("got %v with %d created", err, s.created.Load())
	}
}

func TestCommandIsNamedAfterItsProgram(t *testing.T) {
	got, err := besideNames([]string{"/opt/queue/manager --zap", "QPS=5 exec ./queue", "manager --webhooks", "queue"})
	if want := []string{"manager", "queue", "manager-2", "queue-2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := besideNames([]string{"queue", "A=B "}); err == nil || !strings.Contains(err.Error(), `--with "A=B "`) {
		t.Errorf("got %v", err)
	}
}

func TestEndOfACommandEndsItsChildren(t *testing.T) {
	dir := t.TempDir()
	p, err := startBeside("first", "echo $KUBECONFIG; sleep 1000 & echo $!; wait", "/the/config", dir)
	if err != nil {
		t.Fatal(err)
	}
	if p.name != "first" || p.log != filepath.Join(dir, "first.log") {
		t.Errorf("it is %s and logs to %s", p.name, p.log)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var lines []string
	must(t, eventually(ctx, func() (bool, error) {
		log, err := os.ReadFile(p.log)
		lines = strings.Fields(string(log))
		return len(lines) == 2, err
	}))
	if lines[0] != "/the/config" {
		t.Errorf("its KUBECONFIG is %s", lines[0])
	}
	must(t, p.end())
	must(t, eventually(ctx, func() (bool, error) {
		// A process that has ended can remain as a zombie.
		stat, err := os.ReadFile("/proc/" + lines[1] + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z "), nil
	}))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOptionsOfAScenario(t *testing.T) {
	options := Options{Jobs: 1, Rate: 2, Room: 3, RunTime: time.Second}
	if options.Take(&scenario.Jobs{}); options.Jobs != 1 || options.Rate != 0 || options.Room != 0 || options.RunTime != time.Second {
		t.Errorf("options of an empty scenario: %+v", options)
	}
	runTime := &scenario.Duration{Duration: 20 * time.Millisecond}
	if options.Take(&scenario.Jobs{Jobs: 7, Rate: 2.5, Room: 3, RunTime: runTime}); options.Jobs != 7 || options.Rate != 2.5 || options.Room != 3 || options.RunTime != runTime.Duration {
		t.Errorf("options of a complete scenario: %+v", options)
	}
}

func TestObjectsAreDeletedInBatches(t *testing.T) {
	left := 1200
	api := server(t, func(w http.ResponseWriter, r *http.Request) {
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
	b := &Bench{api: api}
	if n, err := b.left(t.Context(), podsPath); n != 1200 || err != nil {
		t.Errorf("%d are left, %v", n, err)
	}
	if err := b.deleteAll(t.Context(), podsPath); err != nil || left != 0 {
		t.Errorf("%d are left, %v", left, err)
	}
}
