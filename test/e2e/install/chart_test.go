package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/lab"
	"kube-queue.dev/kube-queue/test/podrunner"
	"kube-queue.dev/kube-queue/test/testcluster"
)

// release is what the chart's installation is called.
const release = "kube-queue"

func chart() string { return filepath.Join(site.Repository, "charts", "kube-queue") }

// The rendered chart is applied as it is, as are the manifests in deploy/, and the first
// job of the notes runs.
func TestTheRenderedChartIsAppliedAndAFirstJobRuns(t *testing.T) {
	s := begin(t)
	_, err := site.Kubectl(t.Context(), "create", "namespace", testcluster.Namespace)
	lab.Must(t, err)
	s.apply(s.template(""))
	s.waitForRollout()
	s.enter("applied")
	s.Tree(`{cpu: "4"}`)
	s.Apply(tfjob("first"))
	s.WaitForPhase("TFJob", "first", "Succeeded")
	s.ExpectFree()
	// Once more changes nothing: no pod is started anew.
	generation := s.deployment(lab.Controller).Generation
	s.apply(s.template(""))
	if got := s.deployment(lab.Controller).Generation; got != generation {
		t.Errorf("applied twice, the Deployment is of generation %d, and was of %d", got, generation)
	}
}

// values writes a file of values on top of those that have the pods run here.
func (s *stage) values(own string) string {
	s.t.Helper()
	mine := filepath.Join(s.t.TempDir(), "values.yaml")
	lab.Must(s.t, os.WriteFile(mine, []byte("commonPodAnnotations: {"+podrunner.Annotation+": "+podrunner.Own+"}\n"+own), 0o644))
	return mine
}

// template renders the chart for this cluster.
func (s *stage) template(own string, args ...string) string {
	s.t.Helper()
	return s.helm(append([]string{"template", release, chart(), "--namespace", testcluster.Namespace, "--values", s.values(own),
		"--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy",
		"--api-versions=admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"}, args...)...)
}

func (s *stage) apply(manifests string) {
	s.t.Helper()
	out, err := site.KubectlWith(s.t.Context(), manifests, "apply", "--server-side", "-f", "-")
	if err != nil {
		s.t.Fatal(err, out)
	}
}

// helm runs helm and returns what it prints.
func (s *stage) helm(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), helmPath, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+site.Kubeconfig, "HELM_CACHE_HOME="+s.t.TempDir(), "HELM_CONFIG_HOME="+s.t.TempDir(), "HELM_DATA_HOME="+s.t.TempDir())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}
