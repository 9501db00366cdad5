package trail

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// line returns an audit entry of the API server.
func line(agent, verb, ref string, code int, more string) string {
	return fmt.Sprintf(`{"kind":"Event","level":"Metadata","stage":"ResponseComplete","verb":%q,"user":{"username":"somebody"},"userAgent":%q,`+
		`"objectRef":{%s},"responseStatus":{"metadata":{},"code":%d},%s"requestReceivedTimestamp":"2026-01-02T03:04:05.000100Z","stageTimestamp":"2026-01-02T03:04:05.000350Z"}`+"\n",
		verb, agent, ref, code, more)
}

const (
	jobRef     = `"resource":"jobs","namespace":"a","name":"one","apiGroup":"batch"`
	namedByAPI = `"resource":"pods","namespace":"a"`
	podObject  = `"responseObject":{"kind":"Pod","metadata":{"name":"one-x","ownerReferences":[{"name":"other"},{"name":"one","controller":true}]},"spec":{"containers":[{}]}},`
)

func write(t *testing.T, path string, lines ...string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(strings.Join(lines, "")); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, log *Log) []Entry {
	t.Helper()
	var entries []Entry
	if err := log.Read(func(e *Entry) { entries = append(entries, *e) }); err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestEntryOfAWrite(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 100_000, time.UTC)
	base := Entry{User: "somebody", Received: at, Answered: at.Add(250 * time.Microsecond), Namespace: "a", Code: 200}
	for _, test := range []struct {
		name, line string
		want       func(*Entry)
	}{
		{"a job that is released", line("job-extensions/v1", "patch", jobRef, 200, `"responseObject":{"kind":"Job","metadata":{"name":"one"},"spec":{"suspend":false}},`), func(e *Entry) {
			e.Agent, e.Verb, e.Group, e.Resource, e.Name, e.Whole = "job-extensions", "patch", "batch", "jobs", "one", true
		}},
		{"a job that is held", line("kubectl/v1.36.3 (linux/amd64) kubernetes/$Format", "create", jobRef, 201, `"responseObject":{"kind":"Job","metadata":{"name":"one"},"spec":{"suspend":true}},`), func(e *Entry) {
			e.Agent, e.Verb, e.Group, e.Resource, e.Name, e.Whole, e.Suspended, e.Code = "kubectl", "create", "batch", "jobs", "one", true, true, 201
		}},
		{"a pod that is named by the API server", line("kube-controller-manager/v1 (x)/system:job-controller", "create", namedByAPI, 201, podObject), func(e *Entry) {
			e.Agent, e.Verb, e.Resource, e.Name, e.Whole, e.Owner, e.Code = "kube-controller-manager", "create", "pods", "one-x", true, "one", 201
		}},
		{"a status without its object", line("", "update", jobRef+`,"subresource":"status"`, 200, ""), func(e *Entry) {
			e.Agent, e.Verb, e.Group, e.Resource, e.Subresource, e.Name = "unknown", "update", "batch", "jobs", "status", "one"
		}},
		{"a refusal, which has no object", line("x", "patch", jobRef, 409, `"responseObject":{"kind":"Status","metadata":{}},`), func(e *Entry) {
			e.Agent, e.Verb, e.Group, e.Resource, e.Name, e.Code = "x", "patch", "batch", "jobs", "one", 409
		}},
		{"a write as somebody else", line("x", "patch", jobRef, 200, `"impersonatedUser":{"username":"else"},`), func(e *Entry) {
			e.Agent, e.Verb, e.Group, e.Resource, e.Name, e.User = "x", "patch", "batch", "jobs", "one", "else"
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			write(t, path, test.line)
			want := base
			test.want(&want)
			if got := read(t, Open(path)); len(got) != 1 || got[0] != want {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestOnlyAnsweredWritesAreVisited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write(t, path, line("x", "get", jobRef, 200, ""),
		strings.Replace(line("x", "create", jobRef, 200, ""), "ResponseComplete", "RequestReceived", 1), "\n",
		`{"stage":"ResponseComplete","verb":"create"}`+"\n")
	if got := read(t, Open(path)); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestLogIsReadInParts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	log := Open(path)
	if err := log.Read(func(*Entry) {}); err == nil {
		t.Error("reading a missing log did not fail")
	}
	// Longer than the read buffer.
	long := line("long", "create", jobRef, 201, `"requestObject":"`+strings.Repeat("x", 3<<20)+`",`)
	whole := line("second", "create", jobRef, 201, "")
	write(t, path, line("before", "create", jobRef, 201, ""))
	if err := log.Skip(); err != nil {
		t.Fatal(err)
	}
	write(t, path, long, whole[:40])
	if got := read(t, log); len(got) != 1 || got[0].Agent != "long" {
		t.Errorf("of a part that ends in a line: %d entries", len(got))
	}
	write(t, path, whole[40:])
	if got := read(t, log); len(got) != 1 || got[0].Agent != "second" {
		t.Errorf("of the rest: %+v", got)
	}
	if got := read(t, log); len(got) != 0 {
		t.Errorf("it was read twice: %+v", got)
	}
}

func TestErrorOfAnInvalidLineContainsItsNumber(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write(t, path, line("x", "create", jobRef, 201, ""), "no JSON\n")
	err := Open(path).Read(func(*Entry) {})
	if err == nil || !strings.Contains(err.Error(), path+": line 2 is not an audit entry") {
		t.Errorf("got %v", err)
	}
}

func TestWritesAreCountedByAgentAndKind(t *testing.T) {
	counts := NewCounts()
	add := func(n, code int, kind Kind) {
		for range n {
			counts.Add(&Entry{Agent: kind.Agent, Verb: kind.Verb, Group: kind.Group, Resource: kind.Resource, Subresource: kind.Subresource, Code: code})
		}
	}
	status := Kind{Agent: "b", Verb: "patch", Group: "batch", Resource: "jobs", Subresource: "status"}
	event := Kind{Agent: "b", Verb: "create", Group: "events.k8s.io", Resource: "events"}
	other := Kind{Agent: "a", Verb: "create", Resource: "pods"}
	add(2, 200, event)
	add(3, 200, status)
	add(1, 409, status)
	add(1, 0, other)
	want := []Row{{other, 0, 1}, {status, 3, 1}, {event, 2, 0}}
	if got := counts.Rows(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if done, refused := counts.Sum(func(k Kind) bool { return k.Agent == "b" }); done != 5 || refused != 1 {
		t.Errorf("the sum is %d and %d", done, refused)
	}
	for kind, what := range map[Kind]string{status: "patch jobs.batch/status", event: "create events", other: "create pods"} {
		if got := kind.What(); got != what {
			t.Errorf("%v is called %q", kind, got)
		}
	}
}
