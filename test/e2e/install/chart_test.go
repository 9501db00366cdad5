package install

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/podrunner"
	"kube-queue.dev/kube-queue/test/require"
)

// release is the name of the helm release.
const release = "kube-queue"

// chart is the package of the release under test.
func chart() string { return filepath.Join(released.folder, "kube-queue-"+released.version+".tgz") }

// here has the values for running the pods with the pod runner.
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
	out, err := s.tryHelm(chart, command, values, more...)
	require.NoError(s.t, err)
	return out
}

// tryHelm is like helmOf, and returns the error of helm.
func (s *stage) tryHelm(chart, command string, values []string, more ...string) (string, error) {
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
		err = fmt.Errorf("helm %s: %w\n%s%s", strings.Join(args, " "), err, stderr.String(), out)
	}
	return string(out), err
}
