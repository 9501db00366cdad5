package command

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-queue.dev/kube-queue/test/require"
)

// fails runs a command with a kubeconfig, and checks that it fails with one line that contains the words.
func fails(t *testing.T, kubeconfig string, words []string, args ...string) {
	t.Helper()
	code, out, errs := execute(t, t.Context(), terminal{}, kubeconfig, args...)
	if code != 1 || out != "" || strings.Count(errs, "\n") != 1 {
		t.Errorf("%v: exit status %d, stdout %q, stderr %q", args, code, out, errs)
	}
	require.Says(t, args, errs, words...)
}

func TestAClusterThatDoesNotAnswerIsOneLine(t *testing.T) {
	a := newAPI(t, four)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for _, command := range [][]string{{"list"}, {"why", "train-c"}, {"tree"}, {"queue"}, {"pause", "train-c"}, {"unpause", "train-c"}, {"priority", "train-c", "1"}, {"stop", "q"}, {"resume", "q"}, {"web"}, {"version"}, {"list", "-o", "json"}, {"list", "--watch"}} {
		if command[0] == "version" {
			continue // it prints its own version first
		}
		fails(t, a.kubeconfig(), []string{"cannot reach the API server " + closed.URL, "connection refused", "kubectl config current-context"}, append(command, "--server", closed.URL)...)
	}
	secure := httptest.NewUnstartedServer(a)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	fails(t, a.kubeconfig(), []string{"the certificate of the API server is not trusted"}, "list", "--server", secure.URL)
	fails(t, filepath.Join(t.TempDir(), "none"), []string{"none"}, "list")
	fails(t, a.kubeconfig(), []string{`the kubeconfig has no context "hera"; did you mean "here"?`}, "list", "--context", "hera")
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, []byte("{apiVersion: v1, kind: Config}"), 0o600))
	fails(t, empty, []string{"no cluster is selected", "kubectl config get-contexts"}, "list")
}

func TestAClusterWithoutKubeQueueIsOneLine(t *testing.T) {
	a := newAPI(t, "")
	delete(a.objects, unitsOf)
	delete(a.objects, queuesOf)
	delete(a.objects, treesOf)
	a.answer["older"] = func(map[string]any) (any, *metav1.Status) { return nil, nil }
	for command, resource := range map[string]string{"list": "queueunits", "why x": "queueunits", "tree": "elasticquotatrees", "queue": "queues", "pause x": "queueunits", "stop q": "queues", "list -o yaml": "queueunits"} {
		says(t, a, 1, []string{"the cluster does not serve " + resource, "not installed"}, strings.Fields(command)...)
	}
}

func TestWithoutRightsInANamespaceAnotherOneIsSuggested(t *testing.T) {
	a := newAPI(t, four)
	for _, forbidden := range []string{"create quotareviews", "create queuereviews", "list " + treesOf + " kube-system", "list " + queuesOf + " kube-queue"} {
		a.forbidden[forbidden] = true
	}
	for command, resource := range map[string]string{"tree": "quotareviews", "queue": "queuereviews"} {
		says(t, a, 1, []string{"you may not create " + resource + ` in namespace "research", and you may not list`, "; ask an administrator for this right, or set -n to a namespace that you may view\n"}, command)
	}
}

func TestCredentialsThatAreNotAcceptedAreOneLine(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "code": 401, "message": "Unauthorized"}`))
	}))
	defer server.Close()
	for _, command := range []string{"list", "tree", "why x", "queue", "stop q"} {
		fails(t, newAPI(t, four).kubeconfig(), []string{"does not accept your credentials"}, append(strings.Fields(command), "--server", server.URL)...)
	}
}

func TestTheCommandLineIsChecked(t *testing.T) {
	a := newAPI(t, four)
	for command, words := range map[string]string{
		"lst":                         `unknown command "lst"; did you mean "list"?`,
		"quota":                       `unknown command "quota"; did you mean "tree"?`,
		"list a b c":                  "expected one job",
		"list --sort-by .spec[":       `".spec[" is no path of a field`,
		"list --sort-by .x --watch":   "--watch cannot sort by a field",
		"list -o custom-columns=A":    `column "A"`,
		"list -o jsonpath={":          "--output: error parsing jsonpath",
		"list --quue x":               "Did you mean --queue?",
		"list -o tabel":               `unknown format "tabel"`,
		"list --group sometimes":      "known values: auto, always, never",
		"list --sort size":            "known values: name, age, priority",
		"list --phase Runing":         `did you mean "Running"?`,
		"list --kind TFJbo":           `did you mean "TFJob"?`,
		"list --watch --group always": "cannot be combined",
		"tree --interval -1s":         "--interval must be positive",
		"why jbo/x":                   `did you mean "job"?`,
		"queue a b":                   "expected the name of one queue",
		"web --port abc":              "invalid argument \"abc\" for \"--port\" flag\n",
	} {
		code, out, errs := a.run(strings.Fields(command)...)
		if code != 1 || out != "" || !strings.Contains(errs, words) || !strings.HasSuffix(errs, "--help' for usage.\n") {
			t.Errorf("%s: exit status %d, stdout %q, stderr %q", command, code, out, errs)
		}
	}
	if len(a.requests) > 0 || a.lists > 0 {
		t.Error("requests were made")
	}
}

func TestEachFaultOfAConversionIsOneLine(t *testing.T) {
	code, out, errs := newAPI(t, "").run("convert", "-f", file(t, "a\n---\nb\n"))
	if lines := strings.SplitAfter(errs, "\n"); code != 2 || out != "" || len(lines) != 3 || !strings.HasPrefix(lines[0], "error: ") || !strings.HasPrefix(lines[1], "error: ") {
		t.Errorf("exit status %d, stdout %q, stderr %q", code, out, errs)
	}
}

func TestVersionShowsWhatIsKnown(t *testing.T) {
	a := newAPI(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: kube-queue-controller, namespace: kube-queue}, spec: {template: {spec: {containers: [{name: c, image: "registry.example.com:5000/kube-queue/kube-queue-controller:0.3.0@sha256:0"}]}}}}`)
	expect(t, a, 0, "Plugin:     "+programVersion()+"\nController: 0.3.0\n", "", "version")
	expect(t, a, 0, "Plugin:     "+programVersion()+"\n", "", "version", "--client")
	a.forbidden["get apps/deployments kube-queue"] = true
	expect(t, a, 0, "Plugin:     "+programVersion()+"\n", "You may not read Deployments in namespace kube-queue: the version in the cluster is not known.\n", "version")
	expect(t, newAPI(t, ""), 0, "Plugin:     "+programVersion()+"\n", "There is no Deployment kube-queue-controller in namespace kube-queue: the version in the cluster is not known.\n", "version")
}

func TestNamesAreCompleted(t *testing.T) {
	a := newAPI(t, four)
	for _, c := range []struct{ args, want string }{
		{"why ", "job/train-c job/train-a"},
		{"why tra", "train-c train-a"},
		{"why train-c-", "train-c-job-2e7d2c03a9"},
		{"pause job/", "job/train-c job/train-a"},
		{"stop ", "company-research"},
		{"tree ", "company company/research"},
		{"list --queue ", "company-research"},
		{"list --phase ", "Enqueued Backoff Reserved Dequeued Running Succeeded Failed"},
		{"list --output ", "table wide json yaml name"},
		{"list --namespace ", "research other"},
		{"list --context ", "here"},
	} {
		args := append([]string{"__complete"}, strings.Split(c.args, " ")...)
		code, out, _ := a.run(args...)
		got := strings.Fields(strings.Split(out, "\n:")[0])
		if code != 0 || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.args, got, c.want)
		}
	}
	// Some shells would run the name.
	a.add(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit", "metadata": map[string]any{"name": "hostile", "namespace": "research"},
		"spec": map[string]any{"consumerRef": map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "$(hostname)"}}})
	if _, out, _ := a.run("__complete", "why", "job/"); strings.Contains(out, "$") {
		t.Errorf("it completes with\n%s", out)
	}
	if code, out, _ := a.run("completion", "kubectl"); code != 0 || !strings.HasPrefix(out, "#!/bin/sh\n") || !strings.Contains(out, `kubectl-kube_queue __complete "$@"`) {
		t.Errorf("the script of kubectl:\n%s", out)
	}
	if code, out, _ := a.run("completion", "bash"); code != 0 || len(out) < 1000 {
		t.Errorf("the script of bash, exit status %d", code)
	}
}
