package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheSameSourceGivesTheSameBytesInAnotherFolderWithOtherSettings(t *testing.T) {
	first, second := t.TempDir(), filepath.Join(t.TempDir(), "not/there/yet")
	images(t, fixture(t), first)
	for name, value := range map[string]string{
		"GOFLAGS": "-ldflags=-linkmode=internal -tags=other", "GOAMD64": "v3", "GOARM64": "v9.0", "GOEXPERIMENT": "nogreenteagc",
		"CGO_ENABLED": "1", "TZ": "Asia/Tokyo", "LANG": "de_DE.UTF-8", "SOURCE_DATE_EPOCH": "5",
	} {
		t.Setenv(name, value)
	}
	images(t, fixture(t), second, "--platforms", "linux/arm64,linux/amd64,linux/arm64")
	one, two := contents(t, first), contents(t, second)
	names := slices.Sorted(maps.Keys(one))
	want := []string{"SHA256SUMS"}
	for _, program := range imaged {
		want = append(want, program+"-v1.2.3-image.tar",
			program+"-v1.2.3-linux-amd64.cdx.json", program+"-v1.2.3-linux-amd64.tar.gz",
			program+"-v1.2.3-linux-arm64.cdx.json", program+"-v1.2.3-linux-arm64.tar.gz")
	}
	if !slices.Equal(names, want) {
		t.Errorf("written were %q, not %q", names, want)
	}
	if !slices.Equal(names, slices.Sorted(maps.Keys(two))) {
		t.Errorf("the second run wrote %q", slices.Sorted(maps.Keys(two)))
	}
	for _, name := range names {
		if one[name] != two[name] {
			t.Errorf("%s is another", name)
		}
	}
}

func TestAReleaseHasEverythingThatAUserInstallsFrom(t *testing.T) {
	source, folder, helm := fixture(t), filepath.Join(t.TempDir(), "release"), filepath.Join(t.TempDir(), "helm")
	put(t, filepath.Join(folder, "install.yaml"), "of an earlier run")
	put(t, filepath.Join(folder, sums), "00  install.yaml\n00  old.tar\n")
	put(t, filepath.Join(folder, "old.tar"), "of an earlier run")
	// It shows its arguments. One is the path of a temporary file.
	put(t, helm, "#!/bin/sh\nset -e\n[ -s $3 ]\nshift 3\necho $*\necho 'image: r.test/o/kube-queue/x'\n")
	printed, err := command(t, "make", "--source", source, "--output", folder, "--helm", helm, "--version", "v1.2.3", "--registry", "r.test/o",
		"--source-url", "https://example.test/it/", "--platforms", "linux/amd64,darwin/arm64")
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = folder
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
	files := contents(t, folder)
	want := []string{"RELEASE-NOTES.md", "SHA256SUMS", "UPGRADE.md", "install-webhook.yaml", "install.yaml", "job-extensions-1.2.3-image.tar",
		"kube-queue-1.2.3-chart.tar", "kube-queue-1.2.3.tgz", "kube-queue-controller-1.2.3-image.tar", "kube-queue-web-1.2.3-image.tar", "kube-queue.yaml"}
	for _, program := range append([]string{plugin}, imaged...) {
		for _, platform := range []string{"linux-amd64", "darwin-arm64"} {
			want = append(want, program+"-1.2.3-"+platform+".tar.gz", program+"-1.2.3-"+platform+".cdx.json")
		}
	}
	slices.Sort(want)
	if names := slices.Sorted(maps.Keys(files)); !slices.Equal(names, want) {
		t.Errorf("written were %q, not %q", names, want)
	}
	if lines := strings.Count(files[sums], "\n"); lines != len(want)-1 {
		t.Errorf("%d files are listed, not %d", lines, len(want)-1)
	}
	for _, name := range want {
		if name != sums && !strings.Contains(printed, name) {
			t.Errorf("the table does not show %s:\n%s", name, printed)
		}
	}
	if strings.Contains(files["job-extensions-1.2.3-image.tar"], `"os":"darwin"`) {
		t.Error("the image is also for darwin")
	}
	if got, want := files["install-webhook.yaml"], "# kube-queue v1.2.3 for Kubernetes 1.30 to 1.35.\n# kubectl apply --server-side -f install-webhook.yaml\n"+
		"--namespace kube-queue --values hack/deploy-values.yaml --kube-version 1.30.0 --set holdPolicies.by=webhook\nimage: r.test/o/kube-queue/x\n"; got != want {
		t.Errorf("the manifests are\n%s", got)
	}
	expectPlugin(t, files)
	expectNotes(t, files)
}

func expectPlugin(t *testing.T, files map[string]string) {
	t.Helper()
	linux, darwin := plugin+"-1.2.3-linux-amd64.tar.gz", plugin+"-1.2.3-darwin-arm64.tar.gz"
	if packed := untar(t, []byte(files[linux])); len(packed) != 3 || packed["kubectl_complete-kube_queue"] == "" || packed["LICENSE"] == "" || packed[plugin] == "" {
		t.Errorf("the archive of the plugin has %q", slices.Collect(maps.Keys(packed)))
	}
	for _, want := range []string{
		"  name: kube-queue\n", "  version: v1.2.3\n", "> FOLDER-IN-PATH/kubectl_complete-kube_queue\n",
		"        os: linux\n        arch: amd64\n    uri: https://example.test/it/releases/download/v1.2.3/" + linux + "\n    sha256: " +
			file{data: []byte(files[linux])}.sum() + "\n    bin: kubectl-kube_queue\n",
		"        os: darwin\n        arch: arm64\n    uri: https://example.test/it/releases/download/v1.2.3/" + darwin + "\n    sha256: " +
			file{data: []byte(files[darwin])}.sum() + "\n",
	} {
		if !strings.Contains(files["kube-queue.yaml"], want) {
			t.Errorf("the manifest for krew does not have %q:\n%s", want, files["kube-queue.yaml"])
		}
	}
}

func expectNotes(t *testing.T, files map[string]string) {
	t.Helper()
	for name, wants := range map[string][]string{
		"RELEASE-NOTES.md": {
			"# kube-queue v1.2.3\n\nWords with", "## Before you upgrade\n", "## Added\n",
			"[link over two lines](https://example.test/it/blob/v1.2.3/docs/a.md#b) and [one](https://example.test/x) that",
			"helm install kube-queue oci://r.test/o/kube-queue/charts/kube-queue --version 1.2.3 ", "kubectl apply --server-side -f install.yaml",
			"| chart | `r.test/o/kube-queue/charts/kube-queue:1.2.3` | `sha256:",
			"| image of job-extensions | `r.test/o/kube-queue/job-extensions:1.2.3` | `sha256:", "| `install.yaml` | all manifests, for Kubernetes 1.36 or later |",
			"`make release VERSION=v1.2.3 REGISTRY=r.test/o SOURCE_URL=https://example.test/it` at commit `",
		},
		"UPGRADE.md": {
			"# Upgrade to kube-queue v1.2.3\n", "From the release before, 1.2.2.", "- Do this. See [how](https://example.test/it/blob/v1.2.3/docs/how.md).",
			"helm upgrade kube-queue oci://r.test/o/kube-queue/charts/kube-queue --version 1.2.3 ", "Undo it.", "label\n`app.kubernetes.io/version=1.2.3`",
		},
	} {
		for _, want := range wants {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s lacks %q:\n%s", name, want, files[name])
			}
		}
		if strings.Contains(files[name], "\n### ") {
			t.Errorf("%s has headings of the changelog:\n%s", name, files[name])
		}
	}
}

// stopAt stops a run as soon as it prints something.
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

func TestAStoppedRunLeavesWhatWasThere(t *testing.T) {
	for _, at := range []string{"building", "packing the image of kube-queue-controller", "packing kube-queue-controller"} {
		t.Run("while "+at, func(t *testing.T) {
			source, parent := fixture(t), t.TempDir()
			folder := filepath.Join(parent, "images")
			images(t, source, folder, "--platforms", "linux/amd64")
			before := contents(t, folder)
			ctx, stop := context.WithCancel(t.Context())
			err := start(ctx, []string{"images", "--source", source, "--output", folder, "--version", "v2", "--platforms", "linux/amd64"},
				nil, io.Discard, stopAt{at, stop})
			if err == nil || ctx.Err() == nil {
				t.Errorf("it went on: %v", err)
			}
			if !maps.Equal(before, contents(t, folder)) {
				t.Error("files have changed")
			}
			if left, err := filepath.Glob(filepath.Join(parent, "*")); err != nil || len(left) != 1 {
				t.Errorf("there are %q: %v", left, err)
			}
		})
	}
}

func TestAProgramThatDoesNotCompileIsNamedWithWhatGoSaid(t *testing.T) {
	source, folder := fixture(t), filepath.Join(t.TempDir(), "images")
	put(t, filepath.Join(source, "cmd/job-extensions/main.go"), "package main\n\nfunc main() { nowhere() }\n")
	_, err := command(t, "images", "--source", source, "--output", folder, "--version", "v1")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(err.Error(), "building job-extensions and kube-queue-controller") ||
		!strings.Contains(err.Error(), "undefined: nowhere") {
		t.Errorf("the error is %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(folder), "*")); len(left) > 0 {
		t.Errorf("written were %q", left)
	}
}
