package install

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/podrunner"
	"kube-queue.dev/kube-queue/test/testmode"
)

// release is the name of the helm release.
const release = "kube-queue"

// chart is the package of the release under test.
func chart() string { return filepath.Join(released.folder, "kube-queue-"+released.version+".tgz") }

// The chart is rendered and applied as in docs/operations/install.md, and a first job runs.
func TestTheRenderedChartIsAppliedAndAFirstJobRuns(t *testing.T) {
	testmode.OnlyInTestAll(t, "helm installs the chart in make test, and every test with a cluster applies deploy/, which it renders")
	s := begin(t)
	s.apply(s.template())
	s.waitForRollout()
	s.enter("applied")
	s.Tree(`{cpu: "4"}`)
	s.Apply(tfjob("first", "1", time.Second))
	s.WaitForPhase("TFJob", "first", "Succeeded")
	s.ExpectFree()
	// Applying it again changes nothing: no pod is restarted.
	generation := s.deployment(harness.Controller).Generation
	s.apply(s.template())
	if got := s.deployment(harness.Controller).Generation; got != generation {
		t.Errorf("applied twice, the Deployment is of generation %d, and was of %d", got, generation)
	}
}

// The same for the manifests in deploy/, which enable all kinds.
func TestTheManifestsInDeployAreAppliedAndAFirstJobRuns(t *testing.T) {
	testmode.OnlyInTestAll(t, "every test with a cluster applies the CRDs, roles and policies of deploy/")
	s := begin(t)
	deploy := filepath.Join(suite.Repository, "deploy")
	_, err := suite.Kubectl(t.Context(), "apply", "--server-side", "-f", filepath.Join(deploy, "namespace.yaml"),
		"-f", filepath.Join(deploy, "crds"), "-f", filepath.Join(deploy, "rbac"), "-f", filepath.Join(deploy, "policies"))
	harness.Must(t, err)
	for _, program := range programs {
		text, err := os.ReadFile(filepath.Join(deploy, "programs", program+".yaml"))
		harness.Must(t, err)
		const annotations = "      annotations:\n"
		if !strings.Contains(string(text), annotations) {
			t.Fatalf("the pods of %s have no annotations, to which one could be added", program)
		}
		s.apply(strings.Replace(string(text), annotations, annotations+"        "+podrunner.Annotation+": "+podrunner.Own+"\n", 1))
	}
	s.waitForRollout()
	s.enter("deployed")
	s.Tree(`{cpu: "4"}`)
	s.Apply(tfjob("first", "1", time.Second) + batchJob("second", "1"))
	s.WaitForPhase("TFJob", "first", "Succeeded")
	s.WaitForPhase("Job", "second", "Succeeded")
	s.ExpectFree()
}

// here are the values with which the pod runner runs the pods.
const here = `
controller: {podAnnotations: {"` + podrunner.Annotation + `": ` + podrunner.Own + `}}
jobExtensions: {podAnnotations: {"` + podrunner.Annotation + `": ` + podrunner.Own + `}}
`

// values returns the arguments of helm for additional values.
func (s *stage) values(own string) []string {
	s.t.Helper()
	var args []string
	for _, text := range []string{here, own} {
		file, err := os.CreateTemp(s.t.TempDir(), "values-*.yaml")
		harness.Must(s.t, err)
		_, err = file.WriteString(text)
		harness.Must(s.t, errors.Join(err, file.Close()))
		args = append(args, "--values", file.Name())
	}
	return args
}

// template renders the chart without a cluster.
func (s *stage) template() string {
	s.t.Helper()
	return s.helm("template", s.values(""), "--kube-version=1.36.0", "--set=namespace.create=true")
}

func (s *stage) apply(manifests string) {
	s.t.Helper()
	out, err := suite.KubectlWith(s.t.Context(), manifests, "apply", "--server-side", "-f", "-")
	if err != nil {
		s.t.Fatal(err, out)
	}
}

// helm runs a helm command for the release and the chart, and returns its output.
func (s *stage) helm(command string, values []string, more ...string) string {
	s.t.Helper()
	return s.helmOf(chart(), command, values, more...)
}

// helmOf is like helm, for a chart in another folder.
func (s *stage) helmOf(chart, command string, values []string, more ...string) string {
	s.t.Helper()
	args := []string{command, release}
	if values != nil {
		args = append(append(args, chart), values...)
	}
	args = append(append(args, more...), "--namespace", clustertest.Namespace)
	cmd := exec.CommandContext(s.t.Context(), helmPath, args...)
	for _, kind := range []string{"CACHE", "CONFIG", "DATA"} {
		cmd.Env = append(cmd.Env, "HELM_"+kind+"_HOME="+s.t.TempDir())
	}
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+suite.Kubeconfig), cmd.Env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}
