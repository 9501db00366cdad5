package plugin

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/require"
)

// tree has two groups that share 4 cpu.
const tree = `
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: elasticquotatree, namespace: kube-system}
spec:
  root:
    name: root
    max: {cpu: 4}
    children:
    - {name: a, namespaces: [team-a], min: {cpu: 1}, max: {cpu: 4}}
    - {name: b, namespaces: [team-b], min: {cpu: 1}, max: {cpu: 4}}
`

const (
	tenant = "alice"
	down   = "kube-queue-controller does not answer; this is what the objects show."
)

// One test, because all parts share the programs and the jobs.
func TestThePluginOnACluster(t *testing.T) {
	env := suite.Env(t, "team-a")
	env.EnsureNamespace("team-b")
	env.ApplyAsIs(tree)
	controller := suite.Program(t, harness.Controller)
	suite.AnswersReviews(t, controller)
	controller.Start()
	suite.Program(t, harness.Extensions, "--enabled-extensions=job").Start()
	_, err := suite.Kubectl(t.Context(), "create", "rolebinding", tenant, "-n", "team-a", "--clusterrole=edit", "--user="+tenant)
	harness.Must(t, err)

	env.ApplyAsIs(harness.MarkedJob("team-b", "secret", "2"))
	env.ApplyAsIs(harness.MarkedJob("team-a", "small", "1"))
	env.WaitForPhase("Job", "small", "Running")
	env.ApplyAsIs(harness.MarkedJob("team-a", "large", "3"))
	env.WaitForReason("Job", "large", "QuotaExceeded")
	large := env.Unit("Job", "large").Name
	harness.Eventually(t, time.Minute, "reviews are answered", func() (bool, string) {
		r := kubeQueue(t, "tree")
		return r.code == 0 && r.errors == "", fmt.Sprint(r)
	})

	t.Run("an administrator sees everything", func(t *testing.T) {
		succeeds(t, []string{"NAMESPACE", "job/secret", "job/large", "QuotaExceeded"}, "list", "-A")
		succeeds(t, []string{"root", "  a ", "  b ", "cpu"}, "tree")
		succeeds(t, []string{"root-a", "root-b", "RoundRobin"}, "queue")
		succeeds(t, []string{"POSITION", "job/large"}, "queue", "root-a")
		for _, name := range []string{"large", "job/large", "jobs.batch/large", large, "qu/" + large} {
			succeeds(t, []string{"Job large waits: QuotaExceeded", "Position:  1 of 1", "It lacks:", "job/secret", "What would admit it:"}, "why", name, "-n", "team-a")
		}
		succeeds(t, []string{`"kind": "QueueUnitReview"`, `"reason": "QuotaExceeded"`}, "why", "large", "-n", "team-a", "-o", "json")
	})
	t.Run("a tenant sees its own jobs, and no name of others", func(t *testing.T) {
		as := []string{"--as", tenant, "-n", "team-a"}
		for _, args := range [][]string{{"list"}, {"tree"}, {"queue"}, {"queue", "root-a"}, {"why", "large"}, {"why", "large", "-o", "yaml"}, {"tree", "-o", "json"}, {"list", "-o", "json"}, {"queue", "root-a", "-o", "json"}} {
			r := kubeQueue(t, append(args, as...)...)
			if r.code != 0 || r.errors != "" || r.out == "" {
				t.Errorf("%v: exit status %d\n%s%s", args, r.code, r.out, r.errors)
			}
			for _, name := range []string{"secret", "team-b"} {
				if strings.Contains(r.out, name) {
					t.Errorf("%v shows %q:\n%s", args, name, r.out)
				}
			}
		}
		fails(t, []string{`cannot list resource "queueunits"`, "ask an administrator"}, "list", "-A", "--as", tenant)
		fails(t, []string{`cannot list resource "queueunits"`}, "list", "-n", "team-b", "--as", tenant)
		fails(t, []string{`cannot get resource`}, "why", "secret", "-n", "team-b", "--as", tenant)
		fails(t, []string{"queue root-a", `cannot patch resource "queues"`}, "stop", "root-a", "--as", tenant, "-n", "team-a")
	})
	t.Run("wrong names are one line", func(t *testing.T) {
		fails(t, []string{`no job or unit "larg" in namespace team-a; did you mean "large"?`}, "why", "larg", "-n", "team-a")
		fails(t, []string{`namespace "team-aa" does not exist; did you mean "team-a"?`}, "list", "-n", "team-aa")
		fails(t, []string{`queue "root-c" does not exist`}, "resume", "root-c")
		fails(t, []string{`quota "root/c" does not exist`}, "tree", "root/c")
		fails(t, []string{`has no context "none"`}, "list", "--context", "none")
		fails(t, []string{"cannot reach the API server https://127.0.0.1:1"}, "list", "--server", "https://127.0.0.1:1")
	})
	t.Run("a tenant pauses, unpauses and orders its jobs", func(t *testing.T) {
		as := []string{"--as", tenant, "-n", "team-a"}
		does := func(want string, args ...string) {
			t.Helper()
			if r := succeeds(t, nil, append(args, as...)...); r.out != want+"\n" {
				t.Errorf("%v: %q, want %q", args, r.out, want)
			}
		}
		does("job.batch/large paused (dry run)", "pause", "large", "--dry-run")
		does("job.batch/large paused", "pause", "large")
		becomes(t, env, "large", "inactive", func(u *v1alpha1.QueueUnit) bool { return !ptr.Deref(u.Spec.Active, true) })
		does("job.batch/large is already paused", "pause", "large")
		does("job.batch/large unpaused: it is queued again", "unpause", "large")
		becomes(t, env, "large", "active", func(u *v1alpha1.QueueUnit) bool { return ptr.Deref(u.Spec.Active, true) })
		does("job.batch/large is not paused", "unpause", "job/large")
		does("job.batch/large has priority 7 (was 0)", "priority", "large", "7")
		becomes(t, env, "large", "more urgent", func(u *v1alpha1.QueueUnit) bool { return u.Spec.Priority == 7 })
		fails(t, []string{"job.batch/small holds quota", "--evict"}, append([]string{"pause", "small"}, as...)...)
		does("job.batch/small paused; it is being stopped", "pause", "small", "--evict")
		env.WaitForPhase("Job", "small", "Enqueued")
		does("job.batch/small unpaused: it is queued again", "unpause", "small")
		env.WaitForPhase("Job", "small", "Running")
	})
	t.Run("an administrator stops and resumes a queue", func(t *testing.T) {
		succeeds(t, []string{"queue root-a stopped; running jobs continue\n"}, "stop", "root-a")
		// The answer is current. The status of the unit follows later.
		harness.Eventually(t, 30*time.Second, "the job waits for the queue", func() (bool, string) {
			r := kubeQueue(t, "why", "large", "-n", "team-a")
			return strings.HasPrefix(r.out, "Job large waits: QueueStopped\n"), fmt.Sprint(r)
		})
		succeeds(t, []string{"queue root-a already has spec.stop Hold\n"}, "stop", "root-a")
		succeeds(t, []string{"queue root-a resumed\n"}, "resume", "root-a")
	})
	t.Run("a watch shows what changes, until Ctrl-C", watches(env))
	t.Run("kubectl completes names", func(t *testing.T) {
		for want, args := range map[string][]string{"job/large\n": {"why", "-n", "team-a", "job/"}, "root-a\n": {"stop", ""}} {
			if r := kubeQueue(t, append([]string{"__complete"}, args...)...); r.code != 0 || !strings.Contains(r.out, want) {
				t.Errorf("%q: exit status %d\n%s%s", args, r.code, r.out, r.errors)
			}
		}
	})
	t.Run("the exit status of simulate is for scripts", func(t *testing.T) {
		file := func(text string) string {
			name := filepath.Join(t.TempDir(), "file.yaml")
			harness.Must(t, os.WriteFile(name, []byte(text), 0o600))
			return name
		}
		with := func(max string) string {
			return file(strings.Replace(tree, "max: {cpu: 4}\n    children", "max: {cpu: "+max+"}\n    children", 1))
		}
		for _, c := range []struct {
			code  int
			words []string
			args  []string
		}{
			{0, []string{"The tree is valid.", "1 unit that waits now would start.", "job/large"}, []string{"-f", with("8")}},
			{1, []string{"The tree is invalid.", "error:"}, []string{"-f", with("-8")}},
			{1, []string{"exceeded by what runs: cpu in quota root: used 3 of max 2"}, []string{"-f", with("2")}},
			{1, []string{"job/huge", "waits", "ExceedsMaxQuota"}, []string{"-f", file(harness.MarkedJob("team-a", "huge", "9"))}},
			{0, []string{"job/tiny", "starts"}, []string{"-f", file(harness.MarkedJob("team-b", "tiny", "500m"))}},
			{2, nil, []string{"-f", file(harness.MarkedJob("team-a", "tiny", "500m")), "--as", tenant, "-n", "team-a"}},
		} {
			r := kubeQueue(t, append([]string{"simulate"}, c.args...)...)
			if r.code != c.code {
				t.Errorf("%v: exit status %d, want %d\n%s%s", c.args, r.code, c.code, r.out, r.errors)
			}
			require.Says(t, c.args, r.out, c.words...)
		}
	})
	t.Run("a tenant is told when jobs would start", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "jobs.yaml")
		harness.Must(t, os.WriteFile(name, []byte(harness.MarkedJob("team-a", "tiny", "500m")+"---\n"+harness.MarkedJob("team-a", "huge", "9")), 0o600))
		r := kubeQueue(t, "advise", "-f", name, "--as", tenant, "-n", "team-a")
		for _, word := range []string{"job/tiny", "now", "job/huge", "never: ExceedsMaxQuota"} {
			if r.code != 0 || !strings.Contains(r.out, word) || strings.Contains(r.out, "secret") {
				t.Errorf("exit status %d, want %q\n%s%s", r.code, word, r.out, r.errors)
			}
		}
	})
	t.Run("an assistant asks with the rights of a tenant", assists)
	t.Run("the objects do if nobody answers", func(t *testing.T) {
		controller.Stop()
		for args, words := range map[string][]string{
			"why large -n team-a": {"Job large waits: ", "Position:  1 of 1", "It lacks:", "job/secret", "What would admit it:"},
			"tree":                {"root", "  a ", "cpu"},
			"queue":               {"root-a", "root-b"},
			"queue root-a":        {"POSITION", "job/large"},
		} {
			r := kubeQueue(t, strings.Fields(args)...)
			if r.code != 0 || r.errors != down+"\n" {
				t.Errorf("%s: exit status %d, stderr %q", args, r.code, r.errors)
			}
			require.Says(t, args, r.out, words...)
		}
		succeeds(t, []string{"job/large"}, "list", "-n", "team-a")
		r := kubeQueue(t, "why", "large", "-n", "team-a", "--as", tenant)
		if r.code != 0 || strings.Contains(r.out, "secret") || !strings.Contains(r.out, "Job large waits: ") || !strings.Contains(r.errors, "You may not read") {
			t.Errorf("a tenant: exit status %d\n%s%s", r.code, r.out, r.errors)
		}
	})
}

// becomes waits until the unit of a Job satisfies a condition.
func becomes(t *testing.T, env *harness.Env, job, what string, so func(*v1alpha1.QueueUnit) bool) {
	t.Helper()
	harness.Eventually(t, 30*time.Second, "the unit of "+job+" is "+what, func() (bool, string) {
		unit := env.Unit("Job", job)
		return so(unit), fmt.Sprint(unit.Spec)
	})
}

// watches starts a watch, and interrupts it once it has shown a change.
func watches(env *harness.Env) func(*testing.T) {
	return func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := command(ctx, "list", "--watch", "-n", "team-a")
		out, err := cmd.StdoutPipe()
		harness.Must(t, err)
		harness.Must(t, cmd.Start())
		lines := bufio.NewScanner(out)
		seen := func(words ...string) {
			t.Helper()
			for lines.Scan() {
				found := true
				for _, word := range words {
					found = found && strings.Contains(lines.Text(), word)
				}
				if found {
					return
				}
			}
			t.Fatalf("no line with %q", words)
		}
		seen("job/large", "Enqueued")
		env.ApplyAsIs(harness.MarkedJob("team-a", "third", "9"))
		seen("job/third", "ExceedsMaxQuota")
		env.Delete(harness.Jobs, "third")
		seen("job/third", "Deleted")
		// The plugin has replaced the kubectl process.
		harness.Must(t, cmd.Process.Signal(os.Interrupt))
		for lines.Scan() {
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 130 {
			t.Errorf("exit status %d (%v) after an interrupt", code, cmd.ProcessState.Sys().(syscall.WaitStatus))
		}
	}
}

// assists calls each tool of kubectl kube-queue mcp.
func assists(t *testing.T) {
	transport := &mcp.CommandTransport{Command: command(t.Context(), "mcp", "--as", tenant, "-n", "team-a")}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), transport, nil)
	harness.Must(t, err)
	tools, err := session.ListTools(t.Context(), nil)
	harness.Must(t, err)
	calls := map[string][]struct {
		arguments map[string]any
		words     string
		fails     bool
	}{
		"list":  {{nil, `"job":"job/large"`, false}, {map[string]any{"allNamespaces": true}, `"hidden":1`, false}},
		"why":   {{map[string]any{"job": "large"}, `"position":1`, false}, {map[string]any{"job": "larg"}, "did you mean", true}, {nil, "job", true}},
		"tree":  {{nil, `"quota":"root/a"`, false}},
		"queue": {{nil, `"queue":"root-a"`, false}, {map[string]any{"queue": "root-a"}, `"alike":1`, false}},
		// It needs objects that no tenant may read.
		"simulate": {{map[string]any{"manifests": harness.MarkedJob("team-a", "tiny", "500m")}, "cannot list", true}},
		"advise":   {{map[string]any{"manifests": harness.MarkedJob("team-a", "tiny", "500m")}, "now", false}},
	}
	if len(tools.Tools) != len(calls) {
		t.Errorf("%d tools", len(tools.Tools))
	}
	for _, tool := range tools.Tools {
		for _, c := range calls[tool.Name] {
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool.Name, Arguments: c.arguments})
			answer, failed := fmt.Sprint(err), true
			if err == nil {
				data, err := json.Marshal(result)
				harness.Must(t, err)
				answer, failed = string(data), result.IsError
			}
			if failed != c.fails || !strings.Contains(strings.ReplaceAll(answer, `\"`, `"`), c.words) || strings.Contains(answer, "secret") {
				t.Errorf("%s %v: failed %t: %s", tool.Name, c.arguments, failed, answer)
			}
		}
	}
	harness.Must(t, session.Close())
}
