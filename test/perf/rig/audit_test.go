package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/audit/log"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/perf/report"
)

const jobRef = `"resource":"jobs","namespace":"a","name":"one","apiGroup":"batch"`

// line returns an audit entry of the API server.
func line(agent, verb, ref string, code int, more string) string {
	return fmt.Sprintf(`{"kind":"Event","level":"Metadata","stage":"ResponseComplete","verb":%q,"user":{"username":"somebody"},"userAgent":%q,`+
		`"objectRef":{%s},"responseStatus":{"metadata":{},"code":%d},%s"requestReceivedTimestamp":"2026-01-02T03:04:05.000100Z","stageTimestamp":"2026-01-02T03:04:05.000350Z"}`+"\n",
		verb, agent, ref, code, more)
}

func TestEntryOfAWrite(t *testing.T) {
	job := Kind{Agent: "x", Group: "batch", Resource: "jobs", Verb: "patch", OK: true}
	status, unknown, refused := job, job, job
	status.Agent, status.Subresource = "kubectl", "status"
	unknown.Agent = "unknown"
	refused.OK = false
	for _, test := range []struct {
		line string
		want Entry
	}{
		{line("x/v1", "patch", jobRef, 200, `"responseObject":{"kind":"Job","metadata":{"name":"one"},"spec":{"suspend":true}},`), Entry{Kind: job, Whole: true, Suspended: true}},
		{line("kubectl/v1.36.3 (linux/amd64) kubernetes/$Format", "patch", jobRef+`,"subresource":"status"`, 200, ""), Entry{Kind: status}},
		{line("x", "patch", jobRef, 409, `"responseObject":{"kind":"Status","metadata":{}},`), Entry{Kind: refused}},
		{line("", "patch", jobRef, 200, ""), Entry{Kind: unknown}},
	} {
		test.want.Namespace, test.want.Name, test.want.Answered = "a", "one", time.Date(2026, 1, 2, 3, 4, 5, 350_000, time.UTC)
		if got, err := readEntry([]byte(test.line)); err != nil || *got != test.want {
			t.Errorf("got %+v, %v\nwant %+v", got, err, test.want)
		}
	}
	if got, err := readEntry([]byte(line("x", "get", jobRef, 200, ""))); got != nil || err != nil {
		t.Errorf("a read is %+v, %v", got, err)
	}
}

func TestMarkersAreNoWritesOfTheMeasurement(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	text := line("first", "create", jobRef, 201, "") + line("x", "create", `"resource":"configmaps","name":"`+clustertest.MarkerPrefix+`1"`, 201, "")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var agents []string
	l := &Log{file: log.Open(path)}
	if err := l.read(func(e *Entry) { agents = append(agents, e.Agent) }); err != nil || !slices.Equal(agents, []string{"first"}) {
		t.Errorf("read %v, %v", agents, err)
	}
}

func TestWritesAreCountedByAgentAndKind(t *testing.T) {
	counts := Counts{}
	add := func(n int, ok bool, kind Kind) {
		for range n {
			kind.OK = ok
			counts.Add(&Entry{Kind: kind})
		}
	}
	status := Kind{Agent: Extensions, Verb: "patch", Group: "batch", Resource: "jobs", Subresource: "status"}
	add(30, true, status)
	add(10, false, status)
	add(20, true, Kind{Agent: Controller, Verb: "patch", Group: "scheduling.x-k8s.io", Resource: "queues"})
	add(5, true, Kind{Agent: "a", Verb: "create", Group: "events.k8s.io", Resource: "events"})
	add(1, true, Kind{Agent: "rare", Verb: "create", Resource: "pods"})
	r := report.New("test")
	counts.Show(r.Section("writes"), 100, nil)
	var got []string
	for _, f := range r.Sections[0].Figures {
		got = append(got, fmt.Sprint(f.Name, " ", f.Value))
	}
	if want := []string{"all 0.56", "kube-queue, on jobs, units and events 0.3", "kube-queue, on Queues and trees 0.2",
		"a: create events 0.05", "job-extensions: patch jobs.batch/status 0.3", "job-extensions: patch jobs.batch/status, refused 0.1",
		"kube-queue-controller: patch queues.scheduling.x-k8s.io 0.2"}; !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
