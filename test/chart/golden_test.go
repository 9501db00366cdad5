package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

// cases are the folders of testdata, each with a values.yaml and the result.
var cases = []struct {
	name string
	args []string
}{
	{name: "default"},
	{name: "everything"},
	{name: "minimal"},
	{name: "resourcequota"},
	{name: "kubernetes-1.30", args: []string{"--kube-version", "1.30.0",
		"--api-versions", "apps/v1/Deployment,admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"}},
}

func values(name string) string { return filepath.Join("testdata", name, "values.yaml") }

func TestGoldenFiles(t *testing.T) {
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			out, err := template(t, chart, append(test.args, "--values", values(test.name))...)
			require.NoError(t, err)
			golden(t, filepath.Join("testdata", test.name, "manifests.yaml"), shortened(out))
		})
	}
}

func TestNotesContainAFirstJob(t *testing.T) {
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			// This command has no flag for the Kubernetes version. It uses the version of helm's libraries.
			out, err := run(t, "install", "queue", chart, "--namespace", "kube-queue", "--dry-run=client", "--values", values(test.name))
			require.NoError(t, err)
			_, notes, found := strings.Cut(out, "\nNOTES:\n")
			if !found {
				t.Fatalf("no notes in:\n%s", out)
			}
			expectUpgrades(t, notes)
			golden(t, filepath.Join("testdata", test.name, "notes.txt"), notes)
		})
	}
}

// expectUpgrades renders what the commands in the notes would install, in the root of the clone.
func expectUpgrades(t *testing.T, notes string) {
	t.Helper()
	for line := range strings.Lines(notes) {
		if !strings.HasPrefix(line, "helm ") {
			continue
		}
		render, isUpgrade := strings.CutPrefix(strings.Replace(line, " --reset-then-reuse-values", "", 1), "helm upgrade ")
		if !isUpgrade || !strings.Contains(line, " --reset-then-reuse-values ") {
			t.Errorf("the command is %s", line)
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-c", helm+" template "+render)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
}

func TestHelmLintSucceeds(t *testing.T) {
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if out, err := run(t, "lint", "--strict", "--quiet", chart, "--values", values(test.name)); err != nil || out != "" {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// inFiles matches manifests that are in the chart's folder files, or generated from it.
var inFiles = regexp.MustCompile(`(?m)^(kind: (?:CustomResourceDefinition|PrometheusRule)\n(?:.*\n)*?spec:\n|  name: kube-queue-dashboard\n(?:.*\n)*?data:\n)(?:(?: .*)?\n)+`)

// shortened removes the contents of manifests that are copied from files.
func shortened(manifests string) string {
	return inFiles.ReplaceAllString(manifests, "${1}  # As in files.\n\n")
}

// golden compares a text with a file, or writes the file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (-update writes it)", err)
	}
	if got == string(want) {
		return
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i, line := range gotLines {
		if i >= len(wantLines) || line != wantLines[i] {
			t.Errorf("%s differs from line %d on:\n%s\n(go test ./test/chart -update writes it again)", file, i+1,
				strings.Join(gotLines[i:min(i+12, len(gotLines))], "\n"))
			return
		}
	}
	t.Errorf("%s has %d lines more (go test ./test/chart -update writes it again)", file, len(wantLines)-len(gotLines))
}
