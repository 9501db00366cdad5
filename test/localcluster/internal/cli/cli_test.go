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
)

func invoke(args ...string) (code int, out, errs string) {
	var stdout, stderr bytes.Buffer
	code = Main(args, Surroundings{In: os.Stdin, Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

func TestErrorsListKnownValues(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"", "no command"},
		{"frobnicate", `unknown command "frobnicate"; known commands: build, up, run, down, status, logs, operators, route, upgrade, apiserver start, apiserver stop, program start, program stop`},
		{"program pause", "program start, program stop"},
		{"route", "no route is given"},
		{"route a/b:443", "must be NAMESPACE/SERVICE:PORT=ADDRESS"},
		{"upgrade --kubernetes 1.20", `unknown version "1.20"`},
		{"up --bogus", "known flags: --audit-level, --audit-objects, --data, --feature-gates, --fresh, --kubernetes"},
		{"build --kubernetes 1.20", `unknown version "1.20"; known versions: ` + strings.Join(cluster.KubernetesVersions(), ", ")},
		{"up extra", `unexpected argument "extra"`},
		{"up --nodes many", "-nodes"},
		{"status -o yaml", "known formats: json"},
		{"logs", "exactly one NAME"},
		{"program stop", "--name is required"},
		{"program start --name x", "after --"},
	} {
		t.Run(test.args, func(t *testing.T) {
			code, _, errs := invoke(strings.Fields(test.args)...)
			if code != 2 || !strings.Contains(errs, test.want) {
				t.Errorf("exit status %d and %q, want 2 and %q", code, errs, test.want)
			}
		})
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	for _, c := range commands() {
		code, out, errs := invoke(append(strings.Fields(c.name), "--help")...)
		if code != 0 || errs != "" || !strings.Contains(out, "Usage: localcluster "+c.name) {
			t.Errorf("%s: exit status %d, %q, %q", c.name, code, out, errs)
		}
	}
	if code, out, _ := invoke("--help"); code != 0 || !strings.Contains(out, "program stop") || strings.Contains(out, "supervise") {
		t.Errorf("exit status %d, %q", code, out)
	}
}

// parsed returns the invocation of a command line.
func parsed(t *testing.T, name string, args ...string) *invocation {
	t.Helper()
	for _, c := range commands() {
		if c.name == name {
			i := newInvocation(c, Surroundings{})
			if _, err := i.parse(args); err != nil {
				t.Fatal(err)
			}
			return i
		}
	}
	t.Fatalf("no command %s", name)
	return nil
}

func TestFlagsAndArgumentsCanBeMixedUntilTwoDashes(t *testing.T) {
	i := parsed(t, "program start", "--name", "a", "x", "--ready-url=u", "y", "--", "ls", "--name", "b")
	if i.name != "a" || i.readyURL != "u" || !slices.Equal(i.positional, []string{"x", "y"}) || !slices.Equal(i.rest, []string{"ls", "--name", "b"}) {
		t.Errorf("got name %q, URL %q, positional %q, rest %q", i.name, i.readyURL, i.positional, i.rest)
	}
}

func TestClusterFlagsReachTheConfiguration(t *testing.T) {
	i := parsed(t, "up", strings.Fields("--data /d --nodes 5 --node-cpu 2 --node-memory 1Gi --node-gpus 8 --operators training-operator, --type-check --pod-run-time 3s --audit-level Metadata --audit-objects jobs.batch,pods --fresh")...)
	c := i.config
	if i.folder != "/d" || !i.fresh || c.Nodes != 5 || c.NodeCPU != "2" || c.NodeMemory != "1Gi" || c.NodeGPUs != 8 ||
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
		if i := parsed(t, "run", strings.Fields(test.args)...); i.config.Kubernetes != test.want {
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
