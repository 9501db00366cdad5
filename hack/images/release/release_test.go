package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

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

func TestTheSectionOfAVersionIsFoundInTheChangelog(t *testing.T) {
	s, err := sectionOf(changelog, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(s.text, "Words with") || !strings.HasSuffix(s.text, "Undo it.") || s.previous != "1.2.2" {
		t.Errorf("before it is %q, and it is %q", s.previous, s.text)
	}
	if part := s.part("Before you upgrade"); part != "- Do this. See [how](docs/how.md)." {
		t.Errorf("the part is %q", part)
	}
	if part := s.part("Before a rollback"); part != "Undo it." {
		t.Errorf("the part is %q", part)
	}
	for version, want := range map[string]string{
		"1.2.4": `rename its section "## Unreleased" to "## 1.2.4 (DATE)"; versions with a section: 1.2.3, 1.2.2, 1.2.1`,
		"1.2":   "no section",
		"1.2.1": "the section of 1.2.1 is empty",
	} {
		if _, err := sectionOf(changelog, version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v", version, err)
		}
	}
}

func TestLinksOfNotesLeadToTheSource(t *testing.T) {
	s, err := sectionOf(changelog, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	o := &options{tag: "v1.2.3"}
	if got, want := o.linked(s.text), "link over two lines (`docs/a.md#b`) and [one](https://example.test/x) that"; !strings.Contains(got, want) {
		t.Errorf("without an address:\n%s\nwant %s", got, want)
	}
	o.sourceURL = "https://example.test/it/"
	if got, want := o.linked(s.text), "[link over two lines](https://example.test/it/blob/v1.2.3/docs/a.md#b) and"; !strings.Contains(got, want) {
		t.Errorf("with an address:\n%s\nwant %s", got, want)
	}
}

func TestNotesSayHowToInstallAndToUpgrade(t *testing.T) {
	s, err := sectionOf(changelog, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	r := &release{
		options: &options{tag: "v1.2.3", version: "1.2.3", registry: "r.test/o"}, section: s, revision: "abc",
		rendered:  []variant{{File: "install.yaml", For: "Kubernetes 1.36 or later"}},
		published: []published{{"chart", "r.test/o/kube-queue/charts/kube-queue:1.2.3", "sha256:12"}},
		products:  []product{{name: "install.yaml", what: "all manifests"}},
	}
	for notes, wants := range map[string][]string{
		r.releaseNotes(): {
			"# kube-queue v1.2.3\n\nWords with", "## Before you upgrade\n", "## Added\n",
			"helm install kube-queue oci://r.test/o/kube-queue/charts/kube-queue --version 1.2.3 ", "kubectl apply --server-side -f install.yaml",
			"| chart | `r.test/o/kube-queue/charts/kube-queue:1.2.3` | `sha256:12` |", "| `install.yaml` | all manifests |",
			"`make release VERSION=v1.2.3 REGISTRY=r.test/o` at commit `abc`",
		},
		r.upgradeNotes(): {
			"# Upgrade to kube-queue v1.2.3\n", "From the release before, 1.2.2.", "- Do this. See how (`docs/how.md`).",
			"helm upgrade kube-queue oci://r.test/o/kube-queue/charts/kube-queue --version 1.2.3 ", "Undo it.",
		},
	} {
		for _, want := range wants {
			if !strings.Contains(notes, want) {
				t.Errorf("the notes lack %q:\n%s", want, notes)
			}
		}
		if strings.Contains(notes, "\n### ") {
			t.Errorf("the notes have headings of the changelog:\n%s", notes)
		}
	}
}

// source writes what is read before the build, as a git repository.
func source(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string]string{
		"CHANGELOG.md":               changelog,
		"LICENSE":                    "a licence",
		"cmd/one/main.go":            "package main\n",
		"cmd/docs/readme.txt":        "no program",
		"hack/values.yaml":           "",
		variantsFile:                 "- {file: install.yaml, for: all, kubernetes: 1.36.0, values: hack/values.yaml}\n",
		chartFolder + "/Chart.yaml":  "name: kube-queue\nversion: 1.2.3\nappVersion: 1.2.3\n",
		chartFolder + "/values.yaml": "image:\n  # A comment.\n  registry: \"\"\nother: {registry: \"\"}\n",
	} {
		put(t, filepath.Join(folder, name), content)
	}
	for _, args := range [][]string{
		{"init", "--quiet"}, {"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@example.test", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message", "x"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return folder
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, args ...string) error {
	t.Helper()
	var log bytes.Buffer
	err := start(t.Context(), args, strings.NewReader(""), &log, &log)
	if strings.Contains(log.String(), "building") {
		t.Errorf("it has built: %s", &log)
	}
	return err
}

func TestWhatCannotBeReleasedIsRefusedBeforeTheBuild(t *testing.T) {
	for _, test := range []struct {
		name   string
		args   []string
		change func(folder string)
		want   string
	}{
		{"nothing is wrong", nil, nil, ""},
		{"no version", []string{"--version", ""}, nil, "make release VERSION=v1.2.3"},
		{"a version without v", []string{"--version", "1.2.3"}, nil, "set v1.2.3"},
		{"a version of two numbers", []string{"--version", "v1.2"}, nil, "is not a semantic version"},
		{"a version with a zero in front", []string{"--version", "v1.02.3"}, nil, "is not a semantic version"},
		{"a version with build metadata", []string{"--version", "v1.2.3+x"}, nil, "has build metadata"},
		{"a version without a section", []string{"--version", "v1.3.0-rc.1"}, nil, `"## 1.3.0-rc.1 (DATE)"`},
		{"a version that the chart does not have", []string{"--version", "v1.2.2"}, nil, "set both to 1.2.2, and run make generate"},
		{"a registry with capitals", []string{"--registry", "ghcr.io/Owner"}, nil, "in lower case"},
		{"an argument", []string{"now"}, nil, "only flags are accepted"},
		{"a change in no commit", nil, func(folder string) { put(t, filepath.Join(folder, "new"), "") }, "changes that are in no commit"},
		{"a change in no commit, for a trial", []string{"--revision", "trial"}, func(folder string) { put(t, filepath.Join(folder, "new"), "") }, ""},
		{"another folder", []string{"--revision", "x"}, func(folder string) { put(t, filepath.Join(folder, "bin/release/mine"), "") }, "no SHA256SUMS of an earlier release"},
		{"a misspelled variant", []string{"--revision", "x"}, func(folder string) { put(t, filepath.Join(folder, variantsFile), "- {fil: a}\n") }, "unknown field"},
		{"a variant in another folder", []string{"--revision", "x"}, func(folder string) {
			put(t, filepath.Join(folder, variantsFile), "- {file: ../a, for: all, kubernetes: 1.36.0, values: v}\n")
		}, "needs the name of a file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := source(t)
			if test.change != nil {
				test.change(folder)
			}
			args := append([]string{"make", "--check", "--version", "v1.2.3", "--source", folder, "--output", filepath.Join(folder, "bin/release")}, test.args...)
			err := command(t, args...)
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("the error is %v", err)
			}
		})
	}
	if err := command(t, "publish"); err == nil || !strings.Contains(err.Error(), "release make or release push") {
		t.Errorf("the error is %v", err)
	}
}

// stopAt ends a run as soon as it shows something.
type stopAt struct {
	text string
	stop context.CancelFunc
}

func (s stopAt) Write(data []byte) (int, error) {
	if strings.Contains(string(data), s.text) {
		s.stop()
	}
	return len(data), nil
}

func TestAnInterruptedReleaseLeavesTheEarlierOne(t *testing.T) {
	folder := source(t)
	output := filepath.Join(t.TempDir(), "bin", "release")
	put(t, filepath.Join(output, sums), "earlier")
	tools := t.TempDir()
	// It says that it builds, and ends only by the interrupt.
	put(t, filepath.Join(tools, "images"), "#!/bin/sh\necho compiling >&2\nexec tail -f /dev/null\n")
	put(t, filepath.Join(tools, "helm"), "")
	ctx, stop := context.WithCancel(t.Context())
	err := start(ctx, []string{"make", "--version", "v1.2.3", "--source", folder, "--output", output,
		"--images", filepath.Join(tools, "images"), "--helm", filepath.Join(tools, "helm")}, nil, io.Discard, stopAt{"compiling", stop})
	if err == nil || ctx.Err() == nil {
		t.Errorf("it went on: %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(output))
	if err != nil || len(entries) != 1 {
		t.Errorf("there are %v: %v", entries, err)
	}
	if text, err := os.ReadFile(filepath.Join(output, sums)); err != nil || string(text) != "earlier" {
		t.Errorf("the earlier release is %q: %v", text, err)
	}
}

func TestACompleteReleaseReplacesTheEarlierOne(t *testing.T) {
	folder := t.TempDir()
	put(t, filepath.Join(folder, "release", "old"), "old")
	put(t, filepath.Join(folder, "scratch", "release", "new"), "new")
	if err := replace(filepath.Join(folder, "release"), filepath.Join(folder, "scratch", "release")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(folder, "release"))
	if err != nil || len(entries) != 1 || entries[0].Name() != "new" {
		t.Errorf("there are %v: %v", entries, err)
	}
}

func TestThePackagedChartHasTheRegistryAsItsDefault(t *testing.T) {
	o := &options{source: source(t), version: "1.2.3", registry: "r.test/o"}
	created := time.Unix(1700000000, 0)
	chart, err := o.chartPackage(created)
	if err != nil {
		t.Fatal(err)
	}
	again, err := o.chartPackage(created)
	if err != nil || !bytes.Equal(chart, again) {
		t.Errorf("it is another one the second time: %v", err)
	}
	files := untar(t, chart)
	if names := slices.Sorted(maps.Keys(files)); !slices.Equal(names, []string{"kube-queue/Chart.yaml", "kube-queue/values.yaml"}) {
		t.Errorf("it has %q", names)
	}
	if got, want := files["kube-queue/values.yaml"], "image:\n  # A comment.\n  registry: r.test/o\nother: {registry: \"\"}\n"; got != want {
		t.Errorf("the values are\n%s", got)
	}
	for _, values := range []string{"image: {}\n", "image:\n  registry: \"\"\nother:\n  registry: \"\"\n", "other:\n  registry: \"\"\nimage: {}\n"} {
		if _, err := o.withRegistry([]byte(values)); err == nil {
			t.Errorf("%q is accepted", values)
		}
	}
}

func untar(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(unzipped); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if header.ModTime.Unix() != 1700000000 || header.Uid != 0 || header.Mode != 0o644 {
			t.Errorf("%s has %v, user %d, mode %o", header.Name, header.ModTime, header.Uid, header.Mode)
		}
		files[header.Name] = string(data)
	}
}

func TestAReleaseForThePlaceholderIsNotPushed(t *testing.T) {
	o := &options{source: source(t), version: "1.2.3", registry: placeholder}
	archive, _, err := o.chartArchive(metadata{}, []byte("the chart"), time.Unix(1700000000, 0), "abc")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	put(t, filepath.Join(folder, "kube-queue-1.2.3-chart.tar"), string(archive))
	put(t, filepath.Join(folder, sums), "")
	if err := command(t, "push", "--folder", folder); err == nil || !strings.Contains(err.Error(), "REGISTRY=ghcr.io/owner") {
		t.Errorf("the error is %v", err)
	}
}

// The chart is pushed as helm reads it.
func TestAPushedChartHasTheMediaTypesOfHelm(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	o := &options{source: source(t), version: "1.2.3", registry: address + "/o"}
	m, err := o.checkChart()
	if err != nil {
		t.Fatal(err)
	}
	archive, digest, err := o.chartArchive(m, []byte("the chart"), time.Unix(1700000000, 0), "abc")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	put(t, filepath.Join(folder, "kube-queue-1.2.3-chart.tar"), string(archive))
	if err := command(t, "push", "--folder", folder); err == nil || !strings.Contains(err.Error(), "run make release first") {
		t.Errorf("without a list of files: %v", err)
	}
	put(t, filepath.Join(folder, sums), "")
	if err := command(t, "push", "--folder", folder, "--username", "me"); err == nil || !strings.Contains(err.Error(), "set --username and --password-stdin together") {
		t.Errorf("without a password: %v", err)
	}
	if err := command(t, "push", "--folder", folder); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(address + "/o/kube-queue/charts/kube-queue:1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(tag)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := image.Digest(); err != nil || got != digest {
		t.Errorf("the digest is %v, want %v: %v", got, digest, err)
	}
	if manifest.Config.MediaType != chartConfigType || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != chartContentType {
		t.Errorf("the manifest is %+v", manifest)
	}
	server.Close()
	if err := command(t, "push", "--folder", folder); err == nil || !strings.Contains(err.Error(), "pushing "+tag.String()) {
		t.Errorf("without a registry: %v", err)
	}
}
