package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
)

// TestCluster runs its parts in parallel on one cluster, because they mostly wait.
func TestCluster(t *testing.T) {
	ready := useShared(t)
	t.Run("parts", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *cluster.Ready){
			"has the version it was built from":     hasVersion,
			"has nodes as requested":                hasNodes,
			"serves mutating admission policies":    servesPolicies,
			"gives tokens that work":                givesTokens,
			"pods run and end as their owners need": podsEnd,
			"a changed pod does not begin again":    podClockGoesOn,
			"a deleted pod respects finalizers":     podDeletion,
			"batch Jobs complete and fail":          batchJobs,
			"training jobs wait, run and succeed":   trainingJobs,
			"runs programs along":                   programs,
			"routes a Service to a program":         routes,
			"is upgraded only to newer versions":    refusesOlderVersions,
			"up again leaves it as it is":           upAgain,
			"refuses to share its folder":           refusesFolder,
			"a second cluster runs beside it":       secondCluster,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, ready)
			})
		}
	})
	t.Run("a crash of a program is only reported", programCrash)
	t.Run("the audit log contains users and objects", func(t *testing.T) { auditLog(t, ready) })
	t.Run("down stops all processes and can be repeated", func(t *testing.T) {
		parts := status(t, shared).Parts
		if r := succeed(t, "down", "--data", shared); !strings.Contains(r.errs, "stopped the cluster") {
			t.Errorf("the output is %q", r.errs)
		}
		nothingLeft(t, shared, parts...)
		if r := succeed(t, "down", "--data", shared); !strings.Contains(r.errs, "no cluster runs") {
			t.Errorf("the output is %q", r.errs)
		}
		if s := status(t, shared); s.Phase != cluster.PhaseStopped {
			t.Errorf("it is %s", s.Phase)
		}
	})
}

func hasVersion(t *testing.T, ready *cluster.Ready) {
	out := kubectl(t, ready, "", "version")
	if strings.Count(out, "v1.36.3") != 2 {
		t.Errorf("kubectl version: %s", out)
	}
}

func hasNodes(t *testing.T, ready *cluster.Ready) {
	out := kubectl(t, ready, "", "get", "nodes", "-o",
		`jsonpath={range .items[*]}{.status.allocatable.cpu} {.status.allocatable.memory} {.status.allocatable.nvidia\.com/gpu} {.status.allocatable.pods} {.spec.taints}{"\n"}{end}`)
	if want := strings.Repeat("16 32Gi 4 1k \n", 2); out != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}

func servesPolicies(t *testing.T, ready *cluster.Ready) {
	out := kubectl(t, ready, "", "api-resources", "--api-group=admissionregistration.k8s.io")
	if !strings.Contains(out, "mutatingadmissionpolicies") || !strings.Contains(out, "admissionregistration.k8s.io/v1 ") {
		t.Errorf("got\n%s", out)
	}
}

func givesTokens(t *testing.T, ready *cluster.Ready) {
	token := strings.TrimSpace(kubectl(t, ready, "", "create", "token", "default"))
	// A token in the kubeconfig has precedence, so this kubeconfig has none.
	config := t.TempDir() + "/kubeconfig"
	content, err := os.ReadFile(ready.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(strings.TrimSpace(line), "token:") {
			line = "    token: " + token + "\n"
		}
		lines = append(lines, line)
	}
	if err := os.WriteFile(config, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	own := *ready
	own.Kubeconfig = config
	if out := kubectl(t, &own, "", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"); out != "system:serviceaccount:default:default" {
		t.Errorf("the token is that of %q", out)
	}
	_, err = tryKubectl(&own, "", "get", "secrets")
	if err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("an account without rights reads secrets: %v", err)
	}
}

func programs(t *testing.T, ready *cluster.Ready) {
	named := func(verb, name string, rest ...string) []string {
		return append([]string{"program", verb, "--data", shared, "--name", name}, rest...)
	}
	succeed(t, named("start", "waits", "--env", "GREETING=hello", "--", "sh", "-c", `echo "$GREETING $KUBECONFIG"; exec sleep 1000`)...)
	first := part(t, status(t, shared), "waits")
	if first.State != cluster.StateReady || first.Kind != "program" {
		t.Errorf("it is %+v", first)
	}
	eventually(t, "log", func() error {
		if out := succeed(t, "logs", "--data", shared, "waits").out; out != "hello "+ready.Kubeconfig+"\n" {
			return fmt.Errorf("the log is %q", out)
		}
		return nil
	})
	if r := localcluster(t, named("start", "waits", "--", "true")...); r.code != 1 || !strings.Contains(r.errs, "is already running") {
		t.Errorf("a second of that name: %+v", r)
	}
	succeed(t, named("kill", "waits")...)
	if p := part(t, status(t, shared), "waits"); p.State != cluster.StateStopped || p.Exit != "signal: killed" || first.Alive() {
		t.Errorf("after kill it is %+v", p)
	}
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	succeed(t, named("start", "waits", "--ready-url", server.URL, "--", "sleep", "1000")...)
	if asked.Load() < 3 {
		t.Error("it was ready before its ready check passed")
	}
}

// programCrash changes the status of the cluster, so it runs after the other parts.
func programCrash(t *testing.T) {
	r := localcluster(t, "program", "start", "--data", shared, "--name", "never-ready", "--ready-url", "http://127.0.0.1:1/", "--", "sh", "-c", "echo cannot; exit 3")
	if r.code != 1 || !strings.Contains(r.errs, "never-ready crashed: exit status 3") || !strings.Contains(r.errs, "cannot") {
		t.Errorf("got %+v", r)
	}
	human := localcluster(t, "status", "--data", shared)
	if human.code != 1 || !strings.Contains(human.out, "never-ready crashed: exit status 3; the end of its log:\ncannot") {
		t.Errorf("got %+v", human)
	}
	if s := status(t, shared); s.Phase != cluster.PhaseReady {
		t.Errorf("the cluster is %s", s.Phase)
	}
	succeed(t, "program", "stop", "--data", shared, "--name", "never-ready")
	if s := status(t, shared); !s.AllReady() {
		t.Errorf("not ready: %+v", s)
	}
}

func upAgain(t *testing.T, ready *cluster.Ready) {
	before := status(t, shared)
	r := succeed(t, "up", "--data", shared)
	if !strings.Contains(r.errs, "already runs") || !strings.Contains(r.out, "export KUBECONFIG="+ready.Kubeconfig) {
		t.Errorf("got %+v", r)
	}
	if after := status(t, shared); after.Supervisor != before.Supervisor {
		t.Error("the second start made another cluster")
	}
}

func refusesFolder(t *testing.T, _ *cluster.Ready) {
	cmd := command("run", "--data", shared)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if r := finish(t, cmd); r.code != 1 || !strings.Contains(r.errs, "in use by a live cluster") {
		t.Errorf("got %+v", r)
	}
}

// auditEntry has the fields of an entry that are checked.
type auditEntry struct {
	Stage, Level, Verb string
	User               struct{ Username string }
	ObjectRef          struct{ Resource, Subresource, Name string }
	RequestObject      json.RawMessage
	ResponseObject     *struct {
		Metadata struct{ ManagedFields []any }
	}
}

func auditLog(t *testing.T, ready *cluster.Ready) {
	file, err := os.Open(ready.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	wrote := map[string]bool{}
	// No line exceeds the buffer of a bufio.Scanner.
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e auditEntry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		ref := e.ObjectRef
		if e.Stage != "ResponseComplete" || e.Verb == "get" || e.Verb == "list" || e.Verb == "watch" ||
			ref.Resource == "leases" || ref.Subresource == "token" || strings.HasSuffix(ref.Resource, "reviews") {
			t.Errorf("an entry that the policy excludes: %s", lines.Text())
		}
		if e.ResponseObject != nil && len(e.ResponseObject.Metadata.ManagedFields) > 0 {
			t.Errorf("an entry with managed fields: %s", lines.Text())
		}
		if ref.Resource == "pods" && e.Verb == "create" && (e.Level != "RequestResponse" || len(e.RequestObject) == 0) {
			t.Errorf("an entry without its object: %s", lines.Text())
		}
		wrote[strings.TrimSuffix(e.User.Username+" "+e.Verb+" "+ref.Resource+"/"+ref.Subresource, "/")] = true
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"admin create jobs",
		"admin create pods",
		"system:serviceaccount:kube-system:job-controller create pods",
		"system:kube-scheduler create pods/binding",
		"system:kube-scheduler create events",
		"kwok patch pods/status",
		"kwok delete pods",
		"training-operator create pods",
		"training-operator update tfjobs/status",
		"system:kube-controller-manager create serviceaccounts",
	} {
		if !wrote[want] {
			t.Errorf("%q is missing in %v", want, wrote)
		}
	}
}

func secondCluster(t *testing.T, first *cluster.Ready) {
	data := t.TempDir()
	cmd := command("run", "--data", data, "--nodes=1", "--audit-level=Metadata", "--audit-objects=pods")
	running := startRun(t, cmd)
	second := running.ready(t)
	if second.Data == first.Data || second.Server == first.Server || second.AuditLog == first.AuditLog {
		t.Errorf("it shares something with the first: %+v", second)
	}
	parts := status(t, data).Parts
	kubectl(t, second, "", "create", "configmap", "only-here", "--from-literal=a=secret-text")
	if _, err := tryKubectl(first, "", "get", "configmap", "only-here"); err == nil || !strings.Contains(err.Error(), "NotFound") {
		t.Errorf("the first cluster has it too: %v", err)
	}
	kubectl(t, second, podYAML("logged-complete", "", "", ""), "create", "-f", "-")
	waitForPod(t, second, "logged-complete", "Running a=true// b=true// True")
	audit, err := os.ReadFile(second.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(audit)) {
		if pod := strings.Contains(line, `"resource":"pods"`) && !strings.Contains(line, `"subresource"`); pod != strings.Contains(line, `"responseObject"`) {
			t.Errorf("only entries of pods should contain objects: %s", line)
		}
	}
	if !strings.Contains(string(audit), `"name":"logged-complete"`) || !strings.Contains(string(audit), `"name":"only-here"`) || strings.Contains(string(audit), "secret-text") {
		t.Error("the audit log is not at level Metadata")
	}
	running.stdin.Close()
	if r := running.wait(t); r.code != 0 {
		t.Errorf("got %+v", r)
	}
	nothingLeft(t, data, parts...)
	if s := status(t, shared); s.Phase != cluster.PhaseReady {
		t.Errorf("the first is %s", s.Phase)
	}
}

func podState(ready *cluster.Ready, name string) (string, error) {
	return tryKubectl(ready, "", "get", "pod", name, "-o",
		`jsonpath={.status.phase}{range .status.containerStatuses[*]} {.name}={.ready}/{.state.terminated.reason}/{.state.terminated.exitCode}{end} {.status.conditions[?(@.type=="Ready")].status}`)
}

func waitForPod(t *testing.T, ready *cluster.Ready, name, want string) {
	t.Helper()
	eventually(t, "pod "+name, func() error {
		got, err := podState(ready, name)
		if err == nil && got != want {
			err = fmt.Errorf("got %q, want %q", got, want)
		}
		return err
	})
}

func waitGone(t *testing.T, ready *cluster.Ready, kind, name string) {
	t.Helper()
	eventually(t, kind+" "+name, func() error {
		out, err := tryKubectl(ready, "", "get", kind, name, "--ignore-not-found", "-o", "name")
		if err == nil && out != "" {
			err = errors.New("it is still there")
		}
		return err
	})
}

func podClockGoesOn(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, podYAML("changing", "", "5s", ""), "create", "-f", "-")
	waitForPod(t, ready, "changing", "Running a=true// b=true// True")
	began := time.Now()
	changes := 0
	eventually(t, "pod changing", func() error {
		changes++
		kubectl(t, ready, "", "label", "--overwrite", "pod", "changing", fmt.Sprintf("change=%d", changes))
		got, err := podState(ready, "changing")
		if err == nil && !strings.HasPrefix(got, "Succeeded") {
			err = errors.New(got)
		}
		return err
	})
	if took := time.Since(began); changes < 3 || took > 15*time.Second {
		t.Errorf("it ended after %v and %d changes", took, changes)
	}
	kubectl(t, ready, podYAML("ended-early", "", "never", ""), "create", "-f", "-")
	waitForPod(t, ready, "ended-early", "Running a=true// b=true// True")
	kubectl(t, ready, "", "annotate", "--overwrite", "pod", "ended-early", "localcluster.kube-queue.dev/run-time=1ms")
	waitForPod(t, ready, "ended-early", "Succeeded a=false/Completed/0 b=false/Completed/0 False")
}
