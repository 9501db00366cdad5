package migration

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/pkg/migration"
	"kube-queue.dev/kube-queue/pkg/simulator/quotatree"
	"kube-queue.dev/kube-queue/test/built"
	"kube-queue.dev/kube-queue/test/docs"
	"kube-queue.dev/kube-queue/test/harness"
)

// shell runs commands as a reader of the documentation does, in a separate folder with kubectl and the plugin.
type shell struct {
	t      *testing.T
	folder string
	// programs are the folders of kubectl and the plugin.
	programs string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	plugin, err := built.Programs(t.Context(), ".", "kube-queue.dev/kube-queue/cmd/kubectl-kube_queue")
	harness.Must(t, err)
	kubectl := t.TempDir()
	harness.Must(t, os.Symlink(suite.KubectlPath, filepath.Join(kubectl, "kubectl")))
	return &shell{t: t, folder: t.TempDir(), programs: kubectl + ":" + plugin}
}

// copy copies files of testdata into the folder.
func (s *shell) copy(name string, to ...string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	harness.Must(s.t, err)
	target := filepath.Join(append([]string{s.folder}, to...)...)
	harness.Must(s.t, os.MkdirAll(filepath.Dir(target), 0o755))
	harness.Must(s.t, os.WriteFile(target, text, 0o644))
}

// run runs a command, and fails the test if it exits with a different status.
func (s *shell) run(command string, status int) (out, report string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "bash", "-c", command)
	cmd.Dir = s.folder
	cmd.Env = append(os.Environ(), "PATH="+s.programs+":"+os.Getenv("PATH"), "KUBECONFIG="+suite.Kubeconfig)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	got, ended := 0, &exec.ExitError{}
	if err := cmd.Run(); errors.As(err, &ended) {
		got = ended.ExitCode()
	} else {
		harness.Must(s.t, err)
	}
	if got != status {
		s.t.Fatalf("%s ends with %d, want %d\n%s%s", command, got, status, stdout.String(), stderr.String())
	}
	return stdout.String(), stderr.String()
}

// split returns the manifests of the jobs in files of converted objects, by name, and the other objects, which are
// applied first. Their tree must pass kube-queue-simulator check.
func (s *shell) split(files ...string) (jobs map[string]string, others string) {
	s.t.Helper()
	var text []byte
	for _, file := range files {
		part, err := os.ReadFile(filepath.Join(s.folder, file))
		harness.Must(s.t, err)
		text = append(append(text, "\n---\n"...), part...)
	}
	trees, faults := quotatree.Check(bytes.NewReader(text))
	if len(faults) > 0 || len(trees) != 1 || len(trees[0].Errors) > 0 {
		s.t.Errorf("the simulator finds %v and %v", faults, trees)
	}
	documents, err := migration.Read(strings.Join(files, ", "), bytes.NewReader(text))
	harness.Must(s.t, err)
	jobs = map[string]string{}
	var rest []*unstructured.Unstructured
	for _, d := range documents {
		if d.Object.GetKind() != "Job" {
			rest = append(rest, d.Object)
			continue
		}
		var manifest bytes.Buffer
		harness.Must(s.t, migration.WriteYAML(&manifest, []*unstructured.Unstructured{d.Object}))
		jobs[d.Object.GetName()] = manifest.String()
	}
	var all bytes.Buffer
	harness.Must(s.t, migration.WriteYAML(&all, rest))
	return jobs, all.String()
}

// commandsOf returns the commands in the code blocks of a page that begin with one of the words, in order.
func commandsOf(t *testing.T, page string, beginnings ...string) []string {
	t.Helper()
	read, err := docs.ReadPage(os.DirFS(suite.Repository), page)
	harness.Must(t, err)
	var commands []string
	for _, command := range read.Commands {
		for _, beginning := range beginnings {
			if !command.Inline && strings.HasPrefix(command.Text, beginning) {
				commands = append(commands, command.Text)
			}
		}
	}
	if len(commands) == 0 {
		t.Fatalf("%s has no such commands", page)
	}
	return commands
}
