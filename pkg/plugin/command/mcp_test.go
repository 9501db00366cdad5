package command

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"kube-queue.dev/kube-queue/test/require"
)

// assistant starts the command with further flags, and returns a client of its tools.
func (a *api) assistant(flags ...string) *mcp.ClientSession {
	a.t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ctx, stop := context.WithCancel(a.t.Context())
	status := make(chan int, 1)
	go func() {
		status <- Run(ctx, Environment{Streams: genericiooptions.IOStreams{In: in, Out: out, ErrOut: io.Discard}, Now: func() time.Time { return now }},
			append([]string{"--kubeconfig", a.kubeconfig(), "--request-timeout", "10s", "mcp"}, flags...))
		out.Close()
	}()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(ctx, &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	require.NoError(a.t, err)
	a.t.Cleanup(func() {
		_ = session.Close()
		toServer.Close()
		if code := <-status; code != exitClean {
			a.t.Errorf("exit status %d", code)
		}
		stop()
	})
	return session
}

// call calls a tool and returns its answer, and whether it is an error.
func call(t *testing.T, session *mcp.ClientSession, tool string, arguments map[string]any) (answer string, failed bool) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return err.Error(), true
	}
	if result.StructuredContent != nil {
		data, err := json.Marshal(result.StructuredContent)
		require.NoError(t, err)
		return string(data), result.IsError
	}
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

func TestAnAssistantAsksWithTheRightsOfTheUser(t *testing.T) {
	a := newAPI(t, four)
	session := a.assistant()
	tools, err := session.ListTools(t.Context(), nil)
	require.NoError(t, err)
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		if !tool.Annotations.ReadOnlyHint || tool.Description == "" || tool.InputSchema == nil || tool.OutputSchema == nil {
			t.Errorf("tool %+v", tool)
		}
	}
	if got := strings.Join(names, " "); got != "advise list queue simulate tree why" {
		t.Errorf("tools %s", got)
	}
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		wants     []string
		fails     bool
	}{
		{"list", nil, []string{`"job":"job/train-c"`, `"requests":"500m cpu"`, `"reason":"MaxJobs"`, `"total":2`, "this is what the objects show"}, false},
		{"list", map[string]any{"allNamespaces": true, "phases": []string{"Enqueued"}, "limit": 1}, []string{`"job":"tfjob/first"`, `"total":2`}, false},
		{"why", map[string]any{"job": "job/train-c"}, []string{`"verdict":"waits: MaxJobs"`, `"position":2`, "the job starts when one of the jobs", "requested 1 kube-queue/max-jobs, used 2 of 2, missing 1"}, false},
		{"why", map[string]any{"job": "first", "namespace": "other"}, []string{`"position":1`}, false},
		{"tree", map[string]any{"quota": "company/research"}, []string{`"quota":"company/research"`, `"min":"4 cpu"`}, false},
		{"queue", nil, []string{`"queue":"company-research"`, `"waiting":2`}, false},
		{"queue", map[string]any{"queue": "company-research"}, []string{`"alike":1`}, false},
		{"queue", map[string]any{"queue": "company-reserch"}, []string{`did you mean \"company-research\"`}, true},
		{"list", map[string]any{"phases": []string{"Pending"}}, []string{`unknown phase \"Pending\"`, "Enqueued"}, true},
		{"simulate", map[string]any{"manifests": strings.ReplaceAll(tree(4), "max-jobs: 2", "max-jobs: 9")}, []string{`"starts":[{"alike":1`}, false},
		{"list", map[string]any{"namespace": "reserch"}, []string{`namespace \"reserch\" does not exist; did you mean \"research\"?`}, true},
		{"simulate", map[string]any{"manifests": "a: b"}, []string{"document 1"}, true},
		{"advise", map[string]any{"manifests": twoPods}, []string{"only kube-queue-controller knows when jobs start"}, true},
		{"why", map[string]any{"job": "job/train-x"}, []string{`did you mean \"train-c\"`}, true},
		{"why", nil, []string{"job"}, true},
		{"why", map[string]any{"job": 7}, []string{"job"}, true},
		{"list", map[string]any{"limit": 1000}, []string{"limit must be from 0 to 200"}, true},
		{"list", map[string]any{"limits": 1}, []string{"limits"}, true},
		{"tree", map[string]any{"quota": "company/reserch"}, []string{`did you mean \"company/research\"`}, true},
		{"delete", nil, []string{"delete"}, true},
	} {
		answer, failed := call(t, session, c.tool, c.arguments)
		if failed != c.fails {
			t.Errorf("%s %v: failed %v: %s", c.tool, c.arguments, failed, answer)
		}
		for _, want := range c.wants {
			if !strings.Contains(answer, want) && !strings.Contains(answer, strings.ReplaceAll(want, `\"`, `"`)) {
				t.Errorf("%s %v does not answer %s:\n%s", c.tool, c.arguments, want, answer)
			}
		}
	}
	a.mu.Lock()
	a.answer["quotareviews"] = func(map[string]any) (any, *metav1.Status) {
		return map[string]any{"observedTime": "2026-01-01T12:00:00.000000Z"}, nil
	}
	a.mu.Unlock()
	if answer, failed := call(t, session, "tree", nil); !failed || !strings.Contains(answer, `no quota lists namespace "research"; ask an administrator`) {
		t.Errorf("without a quota: %s", answer)
	}
	a.mu.Lock()
	a.answer["quotareviews"] = func(map[string]any) (any, *metav1.Status) {
		return map[string]any{"observedTime": "2026-01-01T12:00:00.000000Z", "message": "The last valid quota tree is in force.", "quotas": slices.Repeat([]any{map[string]any{"path": "company"}}, mostAnswered+1)}, nil
	}
	a.mu.Unlock()
	if answer, failed := call(t, session, "tree", nil); failed || strings.Count(answer, `"quota":"company"`) != mostAnswered || !strings.Contains(answer, "Only the first 200 of 201 quotas are shown.") || !strings.Contains(answer, "The last valid quota tree is in force.") {
		t.Errorf("of a large tree: %s", answer)
	}
	a.mu.Lock()
	a.forbidden["list "+unitsOf+" research"] = true
	a.mu.Unlock()
	if answer, failed := call(t, session, "list", nil); !failed || !strings.Contains(answer, "you may not list QueueUnits") {
		t.Errorf("without rights: %s", answer)
	}
	a.mu.Lock()
	a.answer["queuereviews"] = func(map[string]any) (any, *metav1.Status) {
		unit := map[string]any{"namespace": "research", "name": "u", "start": map[string]any{"time": "2026-01-01T14:00:00Z", "earliest": "2026-01-01T13:00:00Z", "latest": "2026-01-01T16:00:00Z"}}
		return map[string]any{"observedTime": "2026-01-01T12:00:00.000000Z", "total": 1, "units": []any{unit}, "groups": []any{map[string]any{"units": 2, "first": unit}}}, nil
	}
	a.mu.Unlock()
	for _, tool := range []string{"list", "queue"} {
		if answer, failed := call(t, session, tool, map[string]any{"queue": "q"}); failed || strings.Count(answer, `"starts":"in about 2 h (1 h to 4 h)"`) != 2 {
			t.Errorf("%s does not say when jobs start: %s", tool, answer)
		}
	}
	if strings.Contains(strings.Join(a.requests, "\n"), "PATCH") {
		t.Errorf("a tool has changed something: %v", a.requests)
	}
}

func TestAnAssistantIsToldThatTheClusterDoesNotAnswer(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	session := newAPI(t, four).assistant("--server", closed.URL)
	for tool, arguments := range map[string]map[string]any{"list": nil, "why": {"job": "job/train-c"}, "tree": nil, "queue": nil, "simulate": {"manifests": tree(4)}} {
		answer, failed := call(t, session, tool, arguments)
		if !failed || !strings.Contains(answer, "cannot reach the API server "+closed.URL) || !strings.Contains(answer, "kubectl config current-context") {
			t.Errorf("%s: failed %v: %s", tool, failed, answer)
		}
	}
}
