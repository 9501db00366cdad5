package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
	"kube-queue.dev/kube-queue/test/require"
)

// TestCluster runs its parts in parallel on one cluster, because they mostly wait.
func TestCluster(t *testing.T) {
	data := t.TempDir()
	t.Cleanup(func() { localcluster(t, "down", "--data", data) })
	succeed(t, "up", "--data", data, "--nodes=2", "--node-cpu=16", "--node-gpus=4", "--operators=training-operator", "--pod-run-time=2s")
	ready := status(t, data).Ready
	t.Run("parts", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *cluster.Ready){
			"has the version it was built from":     hasVersion,
			"has nodes as requested":                hasNodes,
			"pods run and end as their owners need": podsEnd,
			"a changed pod does not begin again":    podClockGoesOn,
			"a deleted pod respects finalizers":     podDeletion,
			"a batch Job completes":                 batchJob,
			"runs programs along":                   programs,
			"is upgraded only to newer versions":    refusesOlderVersions,
			"up again leaves it as it is":           upAgain,
			"refuses to share its folder":           refusesFolder,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, ready)
			})
		}
	})
	t.Run("a crash of a program is only reported", func(t *testing.T) { programCrash(t, data) })
	t.Run("the audit log contains users and objects", func(t *testing.T) { auditLog(t, ready) })
	t.Run("down stops all processes and can be repeated", func(t *testing.T) {
		parts := status(t, data).Parts
		require.Says(t, "the output", succeed(t, "down", "--data", data).errs, "stopped the cluster")
		nothingLeft(t, data, parts...)
		require.Says(t, "the output", succeed(t, "down", "--data", data).errs, "no cluster runs")
		if s := status(t, data); s.Phase != cluster.PhaseStopped {
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

func batchJob(t *testing.T, ready *cluster.Ready) {
	kubectl(t, ready, "", "create", "job", "completes", "--image=none")
	kubectl(t, ready, "", "wait", "--for=condition=complete", "job/completes", "--timeout="+patience.String())
}

func programs(t *testing.T, ready *cluster.Ready) {
	named := func(verb, name string, rest ...string) []string {
		return append([]string{"program", verb, "--data", ready.Data, "--name", name}, rest...)
	}
	succeed(t, named("start", "waits", "--", "sh", "-c", `echo "$KUBECONFIG"; exec sleep 1000`)...)
	first := part(t, status(t, ready.Data), "waits")
	if first.State != cluster.StateReady || first.Kind != "program" {
		t.Errorf("it is %+v", first)
	}
	require.Eventually(t, "log", func() error {
		if out := succeed(t, "logs", "--data", ready.Data, "waits").out; out != ready.Kubeconfig+"\n" {
			return fmt.Errorf("the log is %q", out)
		}
		return nil
	})
	if r := localcluster(t, named("start", "waits", "--", "true")...); r.code != 1 || !strings.Contains(r.errs, "is already running") {
		t.Errorf("a second of that name: %+v", r)
	}
	succeed(t, named("stop", "waits")...)
	if p := part(t, status(t, ready.Data), "waits"); p.State != cluster.StateStopped || p.Exit != "signal: terminated" || first.Alive() {
		t.Errorf("after its stop it is %+v", p)
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
func programCrash(t *testing.T, data string) {
	r := localcluster(t, "program", "start", "--data", data, "--name", "never-ready", "--ready-url", "http://127.0.0.1:1/", "--", "sh", "-c", "echo cannot; exit 3")
	if r.code != 1 || !strings.Contains(r.errs, "never-ready crashed: exit status 3") || !strings.Contains(r.errs, "cannot") {
		t.Errorf("got %+v", r)
	}
	human := localcluster(t, "status", "--data", data)
	if human.code != 1 || !strings.Contains(human.out, "never-ready crashed: exit status 3; the end of its log:\ncannot") {
		t.Errorf("got %+v", human)
	}
	if s := status(t, data); s.Phase != cluster.PhaseReady {
		t.Errorf("the cluster is %s", s.Phase)
	}
	succeed(t, "program", "stop", "--data", data, "--name", "never-ready")
	if s := status(t, data); !s.AllReady() {
		t.Errorf("not ready: %+v", s)
	}
}

func refusesOlderVersions(t *testing.T, ready *cluster.Ready) {
	if r := localcluster(t, "upgrade", "--data", ready.Data, "--kubernetes", ready.Kubernetes); r.code != 1 || !strings.Contains(r.errs, "is not newer") {
		t.Errorf("got %+v", r)
	}
	if r := localcluster(t, "apiserver", "stop", "--data", ready.Data); r.code != 1 || !strings.Contains(r.errs, "no second API server") {
		t.Errorf("got %+v", r)
	}
}

func upAgain(t *testing.T, ready *cluster.Ready) {
	before := status(t, ready.Data)
	r := succeed(t, "up", "--data", ready.Data)
	if !strings.Contains(r.errs, "already runs") || !strings.Contains(r.out, "export KUBECONFIG="+ready.Kubeconfig) {
		t.Errorf("got %+v", r)
	}
	if after := status(t, ready.Data); after.Supervisor != before.Supervisor {
		t.Error("the second start made another cluster")
	}
}

func refusesFolder(t *testing.T, ready *cluster.Ready) {
	cmd := command("run", "--data", ready.Data)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
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
	require.NoError(t, err)
	defer file.Close()
	wrote, deleted := map[string]bool{}, map[string]bool{}
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
		if e.User.Username == "kwok" && e.Verb == "delete" && ref.Resource == "pods" {
			if deleted[ref.Name] {
				t.Errorf("kwok deleted pod %s twice: it could have been a new pod of that name", ref.Name)
			}
			deleted[ref.Name] = true
		}
		wrote[strings.TrimSuffix(e.User.Username+" "+e.Verb+" "+ref.Resource+"/"+ref.Subresource, "/")] = true
	}
	require.NoError(t, lines.Err())
	for _, want := range []string{
		"admin create jobs",
		"admin create pods",
		"system:serviceaccount:kube-system:job-controller create pods",
		"system:kube-scheduler create pods/binding",
		"system:kube-scheduler create events",
		"kwok patch pods/status",
		"kwok delete pods",
		"training-operator update tfjobs/status",
		"system:kube-controller-manager create serviceaccounts",
	} {
		if !wrote[want] {
			t.Errorf("%q is missing in %v", want, wrote)
		}
	}
}
