package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"kube-queue.dev/kube-queue/test/harness"
)

// commands returns the commands in the notes: lines that start with kubectl, with their manifests.
func commands(notes string) string {
	var script strings.Builder
	manifest := false
	for line := range strings.Lines(notes) {
		if manifest || strings.HasPrefix(line, "kubectl ") {
			script.WriteString(line)
		}
		switch {
		case strings.HasSuffix(strings.TrimSpace(line), "<<'EOF'"):
			manifest = true
		case strings.TrimSpace(line) == "EOF":
			manifest = false
		}
	}
	return script.String()
}

// expectFirstJob runs the commands in the installation notes, and waits until their job ends.
func (s *stage) expectFirstJob(notes string) {
	s.t.Helper()
	bin := s.t.TempDir()
	harness.Must(s.t, os.Symlink(suite.KubectlPath, filepath.Join(bin, "kubectl")))
	script := commands(notes)
	kind := "Job"
	if strings.Contains(script, "kind: TFJob") { // in the notes of release 0.2.0 and earlier
		kind = "TFJob"
	}
	expectWords(s.t, script, "kind: ElasticQuotaTree", "kind: "+kind, "describe")
	cmd := exec.CommandContext(s.t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+suite.Kubeconfig)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("the notes' commands: %v\n%s\n%s", err, script, out)
	}
	s.WaitForPhase(kind, "first-job", "Succeeded")
	s.ExpectFree()
}
