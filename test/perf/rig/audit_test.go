package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/audit/log"
)

const (
	jobRef = `"resource":"jobs","namespace":"a","name":"one","apiGroup":"batch"`
	podRef = `"resource":"pods","namespace":"a"`
	pod    = `"responseObject":{"kind":"Pod","metadata":{"name":"one-x","ownerReferences":[{"name":"other"},{"name":"one","controller":true}]},"spec":{"containers":[{}]}},`
)

// line returns an audit entry of the API server.
func line(agent, verb, ref string, code int, more string) string {
	return fmt.Sprintf(`{"kind":"Event","level":"Metadata","stage":"ResponseComplete","verb":%q,"user":{"username":"somebody"},"userAgent":%q,`+
		`"objectRef":{%s},"responseStatus":{"metadata":{},"code":%d},%s"requestReceivedTimestamp":"2026-01-02T03:04:05.000100Z","stageTimestamp":"2026-01-02T03:04:05.000350Z"}`+"\n",
		verb, agent, ref, code, more)
}

func TestEntryOfAWrite(t *testing.T) {
	job := Kind{Agent: "x", Group: "batch", Resource: "jobs", Verb: "patch"}
	status, unknown := job, job
	status.Agent, status.Subresource = "kubectl", "status"
	unknown.Agent = "unknown"
	for _, test := range []struct {
		line string
		want Entry
	}{
		{line("x/v1", "patch", jobRef, 200, `"responseObject":{"kind":"Job","metadata":{"name":"one"},"spec":{"suspend":true}},`),
			Entry{Kind: job, Name: "one", OK: true, Whole: true, Suspended: true}},
		{line("kube-controller-manager/v1 (x)/system:job-controller", "create", podRef, 201, pod),
			Entry{Kind: Kind{Agent: "kube-controller-manager", Resource: "pods", Verb: "create"}, Name: "one-x", OK: true, Whole: true, Owner: "one"}},
		{line("kubectl/v1.36.3 (linux/amd64) kubernetes/$Format", "patch", jobRef+`,"subresource":"status"`, 200, ""), Entry{Kind: status, Name: "one", OK: true}},
		{line("x", "patch", jobRef, 409, `"responseObject":{"kind":"Status","metadata":{}},`), Entry{Kind: job, Name: "one"}},
		{line("", "patch", jobRef, 200, ""), Entry{Kind: unknown, Name: "one", OK: true}},
	} {
		test.want.Namespace, test.want.Answered = "a", time.Date(2026, 1, 2, 3, 4, 5, 350_000, time.UTC)
		if got, err := readEntry([]byte(test.line)); err != nil || *got != test.want {
			t.Errorf("got %+v, %v\nwant %+v", got, err, test.want)
		}
	}
	if got, err := readEntry([]byte(line("x", "get", jobRef, 200, ""))); got != nil || err != nil {
		t.Errorf("a read is %+v, %v", got, err)
	}
}

func TestLogIsReadInParts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := &Log{log.Open(path)}
	write := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	var agents []string
	read := func() error { return l.Read(func(e *Entry) { agents = append(agents, e.Agent) }) }
	if err := read(); err == nil {
		t.Error("reading a missing log did not fail")
	}
	write(line("before", "create", jobRef, 201, ""))
	if err := l.Skip(); err != nil {
		t.Fatal(err)
	}
	second := line("second", "create", jobRef, 201, "")
	write(line("first", "create", jobRef, 201, "") + line("x", "create", `"resource":"configmaps","name":"perf-marker-1"`, 201, "") + second[:40])
	if err := read(); err != nil {
		t.Fatal(err)
	}
	write(second[40:])
	if err := read(); err != nil || !slices.Equal(agents, []string{"first", "second"}) {
		t.Errorf("read %v, %v", agents, err)
	}
	write("no JSON\n")
	if err := read(); err == nil || !strings.Contains(err.Error(), path+": line 5 is not an audit entry") {
		t.Errorf("got %v", err)
	}
}

func TestWritesAreCountedByAgentAndKind(t *testing.T) {
	counts := Counts{}
	add := func(n int, ok bool, kind Kind) {
		for range n {
			counts.Add(&Entry{Kind: kind, OK: ok})
		}
	}
	status := Kind{Agent: Extensions, Verb: "patch", Group: "batch", Resource: "jobs", Subresource: "status"}
	queue := Kind{Agent: Controller, Verb: "patch", Group: "scheduling.x-k8s.io", Resource: "queues"}
	other := Kind{Agent: "a", Verb: "create", Group: "events.k8s.io", Resource: "events"}
	add(3, true, status)
	add(1, false, status)
	add(2, true, queue)
	add(1, false, other)
	if got, want := counts.Rows(), []Row{{other, 0, 1}, {status, 3, 1}, {queue, 2, 0}}; !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if done, refused := counts.Sum(Kind.ByKubeQueue); done != 3 || refused != 1 {
		t.Errorf("on jobs, units and events: %d and %d", done, refused)
	}
	if done, _ := counts.Sum(Kind.Shared); done != 2 {
		t.Errorf("on Queues and trees: %d", done)
	}
	for kind, what := range map[Kind]string{status: "patch jobs.batch/status", other: "create events"} {
		if got := kind.What(); got != what {
			t.Errorf("%v is called %q", kind, got)
		}
	}
}
