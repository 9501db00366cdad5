package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// dependency is a module that this module needs too, so it is available without a network.
const dependency = "github.com/google/licensecheck"

const changelog = `# Changelog

## Unreleased

- Not yet.

## 1.2.3 (2026-01-02)

Words with a [link over
two lines](docs/a.md#b) and [one](https://example.test/x) that stays.

### Before you upgrade

- Do this. See [how](docs/how.md).

### Added

- That.

### Before a rollback to 1.2.2

Undo it.

## 1.2.2

First.

## 1.2.1 (2025-12-31)
`

// at is the time of what the tests build.
var at = time.Unix(1700000000, 0).UTC()

// fixture writes a git repository with the layout of this one and small programs: a version for the linker, a module
// with a sum, a licence.
func fixture(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	checksums := ""
	for line := range strings.Lines(read(t, "../go.sum")) {
		if strings.HasPrefix(line, dependency+" ") {
			checksums += line
		}
	}
	for name, content := range map[string]string{
		"go.mod":                          "module kube-queue.dev/kube-queue\n\ngo 1.26.0\n\nrequire " + dependency + " " + strings.Fields(checksums)[1] + "\n",
		"go.sum":                          checksums,
		"LICENSE":                         read(t, "../../../LICENSE"),
		"pkg/program/identity/version.go": "package identity\n\nvar linked string\n\nfunc Version() string { return linked }\n",
		"cmd/kube-queue-controller/main.go": "package main\n\nimport (\n\t\"fmt\"\n\n\t\"" + dependency + "\"\n\n\t\"kube-queue.dev/kube-queue/pkg/program/identity\"\n" +
			")\n\nfunc main() {\n\tlicensecheck.Scan(nil)\n\tfmt.Println(identity.Version())\n}\n",
		"cmd/job-extensions/main.go":     "package main\n\nfunc main() {}\n",
		"cmd/kube-queue-web/main.go":     "package main\n\nfunc main() {}\n",
		"cmd/kubectl-kube_queue/main.go": "package main\n\nfunc main() {}\n",
		"cmd/docs/readme.txt":            "no program",
		completionScript:                 "#!/bin/sh\n",
		"CHANGELOG.md":                   changelog,
		chartFolder + "/Chart.yaml":      "name: kube-queue\nversion: 1.2.3\nappVersion: 1.2.3\nannotations:\n  kube-queue.dev/reference: charts/kube-queue\n",
		chartFolder + "/values.yaml":     "image:\n  # A comment.\n  registry: \"\"\nother: {registry: \"\"}\n",
	} {
		put(t, filepath.Join(folder, name), content)
	}
	for _, args := range [][]string{
		{"init", "--quiet"}, {"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@example.test", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message", "x"},
		{"-c", "tag.gpgsign=false", "tag", "v4.5.6"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = folder
		cmd.Env = append(cmd.Environ(), "GIT_COMMITTER_DATE=@1600000000 +0200")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return folder
}

// must ends the test if err is not nil.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o755))
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

// command runs the program and returns what it printed, including its progress.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := start(t.Context(), args, strings.NewReader("a secret\n"), &out, &out)
	return out.String(), err
}

// images makes images from a source, and returns what it printed.
func images(t *testing.T, source, output string, args ...string) string {
	t.Helper()
	args = append([]string{"images", "--source", source, "--output", output, "--version", "v1.2.3", "--revision", "abc", "--created", "1700000000"}, args...)
	out, err := command(t, args...)
	if err != nil {
		t.Fatalf("release %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// contents returns all files of a folder by name.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	must(t, err)
	files := map[string]string{}
	for _, entry := range entries {
		files[entry.Name()] = read(t, filepath.Join(folder, entry.Name()))
	}
	return files
}
