package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/cluster"
	"kube-queue.dev/kube-queue/test/require"
)

func invoke(args ...string) (code int, out, errs string) {
	var stdout, stderr bytes.Buffer
	code = Main(args, Surroundings{In: os.Stdin, Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

func TestAnInvalidCommandLineIsRefused(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"frobnicate", `unknown command "frobnicate"`},
		{"program pause", `unknown command "pause"`},
		{"route", "at least 1 arg"},
		{"route a/b:443", "must be NAMESPACE/SERVICE:PORT=ADDRESS"},
		{"up --bogus", "unknown flag: --bogus"},
		{"build --kubernetes 1.20", `unknown version "1.20"; known versions: ` + strings.Join(cluster.KubernetesVersions(), ", ")},
		{"up extra", `"extra"`},
		{"up --nodes many", "--nodes"},
		{"status -o yaml", "known formats: json"},
		{"logs", "1 arg"},
		{"program stop", `"name" not set`},
		{"program start --name x", "at least 1 arg"},
	} {
		t.Run(test.args, func(t *testing.T) {
			code, _, errs := invoke(strings.Fields(test.args)...)
			if code != 2 || !strings.Contains(errs, test.want) {
				t.Errorf("exit status %d and %q, want 2 and %q", code, errs, test.want)
			}
		})
	}
}

// parsed returns the invocation of a command line.
func parsed(t *testing.T, args ...string) *invocation {
	t.Helper()
	i := newInvocation(Surroundings{})
	command, rest, err := i.commands().Find(args)
	require.NoError(t, err)
	require.NoError(t, command.ParseFlags(rest))
	return i
}

func TestClusterFlagsReachTheConfiguration(t *testing.T) {
	i := parsed(t, strings.Fields("up --data /d --nodes 5 --node-cpu 2 --node-memory 1Gi --node-gpus 8 --operators training-operator --type-check --pod-run-time 3s --audit-level Metadata --audit-objects jobs.batch,pods --fresh")...)
	c := i.config
	if i.data != "/d" || !i.fresh || c.Nodes != 5 || c.NodeCPU != "2" || c.NodeMemory != "1Gi" || c.NodeGPUs != 8 ||
		!slices.Equal(c.Operators, []string{"training-operator"}) || c.PodRunTime != 3*time.Second || c.AuditLevel != "Metadata" || !c.TypeCheck ||
		!slices.Equal(c.AuditObjects, []string{"jobs.batch", "pods"}) {
		t.Errorf("got %+v", i)
	}
}

func TestVersionOfKubernetesIsTheFlagOrTheEnvironment(t *testing.T) {
	for _, test := range []struct{ variable, args, want string }{
		{"", "", "1.36"},
		{"1.34", "", "1.34"},
		{"1.34", "--kubernetes 1.37", "1.37"},
	} {
		t.Setenv("KUBE_QUEUE_KUBERNETES", test.variable)
		if i := parsed(t, strings.Fields("run "+test.args)...); i.config.Kubernetes != test.want {
			t.Errorf("%q: version %s, want %s", test.args, i.config.Kubernetes, test.want)
		}
	}
}

func TestCommandsWithoutACluster(t *testing.T) {
	for args, want := range map[string]int{"status": 1, "down": 0} {
		code, _, errs := invoke(args, "--data", t.TempDir()+"/none")
		if code != want || !strings.Contains(errs, "no cluster") {
			t.Errorf("%s: exit status %d, %q", args, code, errs)
		}
	}
}

func TestOperatorsListModulesAndCRDs(t *testing.T) {
	code, out, errs := invoke("operators")
	var operators []cluster.OperatorInfo
	if err := json.Unmarshal([]byte(out), &operators); err != nil || code != 0 || errs != "" {
		t.Fatalf("exit status %d, %v, %q", code, err, errs)
	}
	var names []string
	for _, o := range operators {
		names = append(names, o.Name)
		if o.Component == "" || o.Module == "" || len(o.CRDs) == 0 {
			t.Errorf("incomplete: %+v", o)
		}
	}
	if !slices.Equal(names, cluster.OperatorNames()) {
		t.Errorf("listed are %v, known are %v", names, cluster.OperatorNames())
	}
	if code, out, _ := invoke("operators", "--kubernetes=1.30"); code != 0 || strings.Contains(out, `"jobset"`) || !strings.Contains(out, `"kuberay"`) {
		t.Errorf("exit status %d; Kubernetes 1.30 accepts the CRDs of\n%s", code, out)
	}
}
