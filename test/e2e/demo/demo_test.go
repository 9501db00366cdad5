// Package demo runs make demo, and then the commands that it suggests.
package demo

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"kube-queue.dev/kube-queue/test/docs"
	"kube-queue.dev/kube-queue/test/require"
)

const root = "../../.."

func TestTheDemoRunsAndWhatItProposesWorks(t *testing.T) {
	bin, data := t.TempDir(), filepath.Join(t.TempDir(), "cluster")
	run(t, "go", "build", "-buildvcs=false", "-o", bin+"/", "./cmd/kube-queue-controller", "./cmd/job-extensions", "./test/demo")
	run(t, "go", "build", "-buildvcs=false", "-o", bin+"/", "./test/localcluster/cmd/localcluster")
	demo := func(args ...string) string {
		return run(t, filepath.Join(bin, "demo"), append([]string{"--data", data, "--bin", bin}, args...)...)
	}
	t.Cleanup(func() { demo("down") })
	out := demo()
	expectInOrder(t, out,
		"== 1 of 5: ", "elasticquotatree.scheduling.sigs.k8s.io/elasticquotatree created",
		"== 2 of 5: ", "train-3     4  Running", "vision       8   12   12  ########++++",
		"== 3 of 5: ", "train-4     4  waits: QuotaExceeded", "used 12 of max 12",
		"== 4 of 5: ", "huge        8  waits: ExceedsMaxQuota", "Events on job interns/huge",
		"== 5 of 5: ", "train-3     4  waits: ", "bert-2      2  Running", "Events on job vision/train-3", "Reclaimed",
		"== Checking the audit log", "== To try next")
	for line := range strings.Lines(out) {
		// Paths of this test are longer than those of a reader.
		if !strings.Contains(line, bin) && !strings.Contains(line, data) && utf8.RuneCountInString(line) > 101 {
			t.Errorf("a line has %d characters: %s", utf8.RuneCountInString(line), line)
		}
	}

	expectInOrder(t, next(t, out),
		"ExceedsMaxQuota", "Events:", `job.batch "train-2" deleted`, "job.batch/train-3 condition met", "elasticquotatree patched", "company-language patched", "Hold")
	// The end of train-2 frees the place of train-3, and the larger max of the interns gives huge a chance.
	for unit, want := range map[string]string{"vision/train-3": "Running", "interns/huge": "QuotaExceeded"} {
		namespace, job, _ := strings.Cut(unit, "/")
		column := ".status.reason"
		if want == "Running" {
			column = ".status.phase"
		}
		run(t, filepath.Join(bin, "kubectl"), "--kubeconfig", filepath.Join(data, "kubeconfig"), "wait", "queueunit/"+unitOf(t, bin, data, namespace, job),
			"-n", namespace, "--timeout=30s", "--for=jsonpath={"+column+"}="+want)
	}
	debug(t, bin, data)
}

// debug runs the commands of CONTRIBUTING.md for the cluster of the demo.
func debug(t *testing.T, bin, data string) {
	t.Helper()
	page, err := docs.ReadPage(os.DirFS(root), "CONTRIBUTING.md")
	require.NoError(t, err)
	here := strings.NewReplacer("$PWD/.cluster/demo", data, ".cluster/demo", data, "bin/", bin+"/")
	command := func(words string) string {
		for _, command := range page.Commands {
			if strings.Contains(command.Text, words) && !command.Inline {
				return here.Replace(command.Text)
			}
		}
		t.Fatalf("CONTRIBUTING.md has no command with %q; change this test", words)
		return ""
	}
	shell := func(commands ...string) string {
		return run(t, "bash", "-euo", "pipefail", "-c", strings.Join(commands, "\n"))
	}
	kubeconfig := command("export KUBECONFIG=")
	expectInOrder(t, shell(kubeconfig, command("kubectl get job,qu")), "job.batch/huge", "queueunit.scheduling.x-k8s.io/huge-job-")
	expectInOrder(t, shell(command("localcluster status")), "job-extensions")
	expectInOrder(t, shell(command("localcluster logs")), "Settings in force")

	// A new build takes over.
	shell(command("program stop"))
	own := exec.Command("bash", "-c", "exec "+command("job-extensions --kubeconfig="))
	own.Dir = root
	var log strings.Builder
	own.Stdout, own.Stderr = &log, &log
	require.NoError(t, own.Start())
	end := func() {
		_ = own.Process.Kill()
		if own.Wait() != nil && own.ProcessState.ExitCode() > 0 {
			t.Errorf("the reader's job-extensions ended:\n%s", &log)
		}
	}
	defer end()
	expectInOrder(t, shell(kubeconfig, here.Replace(`bin/kubectl create job mine -n interns --image=busybox --dry-run=client -o yaml |
  bin/kubectl annotate --local -f - -o yaml scheduling.x-k8s.io/suspend=true | bin/kubectl create -f -
bin/kubectl wait job/mine -n interns --timeout=60s '--for=jsonpath={.spec.suspend}=false'
bin/kubectl get queueunits -n interns -o name`)), "job.batch/mine created", "/mine-job-")
	expectInOrder(t, shell(command("audit-check")), "job")
}

// next runs the commands that the demo prints at its end in one shell, and returns their output.
func next(t *testing.T, out string) string {
	t.Helper()
	_, proposed, _ := strings.Cut(out, "== To try next")
	proposed, _, _ = strings.Cut(proposed, "\nTo stop the cluster")
	_, proposed, _ = strings.Cut(proposed, "\n")
	if strings.Count(proposed, "kubectl") < 6 {
		t.Fatalf("the demo proposes\n%s", proposed)
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", proposed)
	cmd.Dir = root
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("what the demo proposes fails: %v\n%s\n%s", err, proposed, text)
	}
	t.Logf("the commands print:\n%s", text)
	return string(text)
}

// unitOf returns the name of the unit of a job.
func unitOf(t *testing.T, bin, data, namespace, job string) string {
	t.Helper()
	return strings.TrimSpace(run(t, filepath.Join(bin, "kubectl"), "--kubeconfig", filepath.Join(data, "kubeconfig"), "get", "queueunits", "-n", namespace,
		"-o", `jsonpath={.items[?(@.spec.consumerRef.name=="`+job+`")].metadata.name}`))
}

func expectInOrder(t *testing.T, text string, words ...string) {
	t.Helper()
	rest := text
	for _, word := range words {
		_, after, found := strings.Cut(rest, word)
		if !found {
			t.Fatalf("%q is missing, or not in this order:\n%s", word, text)
		}
		rest = after
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	// Building a cluster can take minutes, and t.Context() is done when a cleanup runs.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
