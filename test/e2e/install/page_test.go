package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/docs"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/podrunner"
	"kube-queue.dev/kube-queue/test/testmode"
)

const installPage = "docs/operations/install.md"

// reader runs the commands of a page in a copy of the chart and of deploy/, as a reader does in a clone of the
// repository.
type reader struct {
	*stage
	folder string
	env    []string
	// commands are the commands of the page. next is the index of the next one.
	commands []docs.Command
	next     int
}

// read prepares the copy. The annotation that lets the pods run here is added.
func (s *stage) read(page string) *reader {
	s.t.Helper()
	read, err := docs.ReadPage(os.DirFS(suite.Repository), page)
	harness.Must(s.t, err)
	r := &reader{stage: s, folder: s.t.TempDir(), commands: read.Commands}
	for _, name := range []string{"charts", "deploy"} {
		harness.Must(s.t, os.CopyFS(filepath.Join(r.folder, name), os.DirFS(filepath.Join(suite.Repository, name))))
	}
	for _, program := range programs {
		file := filepath.Join(r.folder, "deploy", "programs", program+".yaml")
		text, err := os.ReadFile(file)
		harness.Must(s.t, err)
		const annotations = "      annotations:\n"
		changed := strings.Replace(string(text), annotations, annotations+"        "+podrunner.Annotation+": "+podrunner.Own+"\n", 1)
		if changed == string(text) {
			s.t.Fatalf("the pods of %s have no annotations, to which one could be added", program)
		}
		harness.Must(s.t, os.WriteFile(file, []byte(changed), 0o644))
	}
	manifests, err := released.manifests("install.yaml")
	harness.Must(s.t, err)
	harness.Must(s.t, os.WriteFile(filepath.Join(r.folder, "install.yaml"), []byte(manifests), 0o644))
	// A wrapper named helm adds these values, and replaces the registry of the pages, which is a placeholder, with
	// one on this machine.
	bin := filepath.Join(r.folder, "bin")
	harness.Must(s.t, os.Mkdir(bin, 0o755))
	harness.Must(s.t, os.Symlink(suite.KubectlPath, filepath.Join(bin, "kubectl")))
	values := filepath.Join(r.folder, "values.yaml")
	harness.Must(s.t, os.WriteFile(values, []byte(here), 0o644))
	harness.Must(s.t, os.WriteFile(filepath.Join(bin, "helm"), []byte(`#!/bin/bash
set -- "${@/#oci:\/\/registry.example.com\//oci://`+released.registry+`/}"
if [[ $* == *" oci://"* ]]; then set -- "$@" --plain-http; fi
case $1 in
install | upgrade | template) exec `+helmPath+` "$@" --values `+values+` ;;
*) exec `+helmPath+` "$@" ;;
esac
`), 0o755))
	r.env = append(os.Environ(), "KUBECONFIG="+suite.Kubeconfig, "HOME="+r.folder,
		"PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return r
}

// run runs the next command of the page, which contains the words.
func (r *reader) run(words string) docs.Command {
	r.t.Helper()
	for r.next < len(r.commands) && !r.runs(r.commands[r.next]) {
		r.next++
	}
	if r.next == len(r.commands) || !strings.Contains(r.commands[r.next].Text, words) {
		r.t.Fatalf("the page has no command %q after the others; change this test", words)
	}
	command := r.commands[r.next]
	r.next++
	r.again(command)
	return command
}

// runs reports whether the test runs a command. It skips make images and kind load, because pods need no images here,
// editors, commands for the webhook, which this version of Kubernetes does not need, and commands for pods at a gate.
func (r *reader) runs(command docs.Command) bool {
	return !strings.HasPrefix(command.Text, "make ") && !strings.HasPrefix(command.Text, "kind ") && !strings.Contains(command.Text, " edit deployment") &&
		!strings.Contains(command.Text, " patch secret job-extensions-webhook ") && !strings.Contains(command.Text, "kube-queue/gated")
}

// again runs a command once more, and compares its output with the page.
func (r *reader) again(command docs.Command) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "bash", "-euo", "pipefail", "-c", command.Text)
	cmd.Dir, cmd.Env = r.folder, r.env
	out, err := cmd.CombinedOutput()
	if err == nil {
		err = new(docs.Names).Compare(command.Output, string(out))
	}
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// expectImages compares the registry of the images of both programs.
func (s *stage) expectImages(registry string) {
	s.t.Helper()
	for _, program := range programs {
		out, err := suite.Kubectl(s.t.Context(), "-n", clustertest.Namespace, "get", "deployment", program, "-o", "jsonpath={.spec.template.spec.containers[0].image}")
		harness.Must(s.t, err)
		if !strings.HasPrefix(out, registry) {
			s.t.Errorf("%s runs %s, not an image of %s", program, out, registry)
		}
	}
}

// runsAJob runs a first job in the namespace, and removes it.
func (s *stage) runsAJob(namespace string) {
	s.t.Helper()
	l := suite.Env(s.t, namespace)
	l.Tree(`{cpu: "4"}`)
	l.Apply(tfjob("first", "1", time.Second))
	l.WaitForPhase("TFJob", "first", "Succeeded")
	l.ExpectFree()
	l.Clean(s.t.Context())
}

func TestTheCommandsOfTheInstallPageRun(t *testing.T) {
	testmode.OnlyInTestAll(t, "the upgrade, the rollback and the uninstallation run in make test")
	s := begin(t)
	r := s.read(installPage)
	r.run("helm install kube-queue oci://")
	r.run("rollout status deployment kube-queue-controller")
	r.run("rollout status deployment job-extensions")
	s.expectImages(released.registry + "/kube-queue/")
	s.remove()

	r.run("kubectl apply --server-side -f install.yaml")
	s.waitForRollout()
	s.expectImages(released.registry + "/kube-queue/")
	s.runsAJob("released")
	s.remove()

	readme := s.read("README.md")
	readme.run("helm install kube-queue charts/kube-queue")
	readme.run("rollout status deployment kube-queue-controller")
	readme.run("rollout status deployment job-extensions")
	s.remove()
	readme.run("helm install kube-queue oci://")
	r.run("helm upgrade kube-queue oci://")
	s.waitForRollout()
	s.remove()

	install := r.run("helm install")
	s.waitForRollout()
	s.remove()

	template := r.run("helm template")
	s.waitForRollout()
	s.runsAJob("rendered")
	generation := s.deployment(harness.Controller).Generation
	r.again(template)
	if got := s.deployment(harness.Controller).Generation; got != generation {
		t.Errorf("applied twice, the Deployment is of generation %d, and was of %d", got, generation)
	}
	s.remove()

	r.run("sed -i")
	apply := r.run("kubectl apply")
	r.run("rollout status deployment kube-queue-controller")
	r.run("rollout status deployment job-extensions")
	s.expectImages("registry.example.com/kube-queue/")
	s.waitForRollout()
	s.runsAJob("deployed")
	s.remove()

	r.again(install)
	upgrade := r.run("helm upgrade")
	s.waitForRollout()
	s.remove()

	r.again(apply)
	r.run("kubectl apply")
	s.remove()

	r.again(install)
	s.enter("default")
	s.edit(harness.Controller, `/name: StrictPriority/{n;s/"false"/"true"/}`)
	r.run("helm upgrade")
	r.run("helm rollback")
	s.edit(harness.Controller, `/name: StrictConsistency/{n;s/"false"/"true"/}`)
	r.run("kubectl apply")
	s.remove()

	r.again(install)
	r.again(upgrade)
	r.run("helm rollback")
	s.waitForRollout()
	uninstall := r.run("helm uninstall")
	r.run("helm install")
	s.waitForRollout()
	r.again(uninstall)
	r.run("kubectl delete crd")
	r.run("kubectl delete namespace")

	r.again(apply)
	r.run("kubectl delete")
	r.run("kubectl delete")

	// The shortest installation is on the chart's own page.
	chart := s.read("charts/kube-queue/README.md")
	chart.run("helm install")
	s.waitForRollout()
	configuration := s.read("docs/operations/configuration.md")
	for _, command := range configuration.commands {
		if strings.HasPrefix(command.Text, "helm ") {
			configuration.again(command)
			s.waitForRollout()
		}
	}

	for _, command := range r.commands[r.next:] {
		if r.runs(command) {
			t.Errorf("%s: this test does not run this command; change it", command)
		}
	}
}
