package main

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestTheSameSourceGivesTheSameBytesInAnotherFolderWithOtherSettings(t *testing.T) {
	first, second := t.TempDir(), filepath.Join(t.TempDir(), "not/there/yet")
	build(t, fixture(t), first)
	for name, value := range map[string]string{
		"GOFLAGS": "-ldflags=-linkmode=internal -tags=other", "GOAMD64": "v3", "GOARM64": "v9.0", "GOEXPERIMENT": "nogreenteagc",
		"CGO_ENABLED": "1", "TZ": "Asia/Tokyo", "LANG": "de_DE.UTF-8", "SOURCE_DATE_EPOCH": "5",
	} {
		t.Setenv(name, value)
	}
	build(t, fixture(t), second, "--programs", "silent,greeter,greeter", "--platforms", "linux/arm64,linux/amd64")
	one, two := contents(t, first), contents(t, second)
	names := slices.Sorted(maps.Keys(one))
	if want := []string{"SHA256SUMS",
		"greeter-linux-amd64", "greeter-linux-amd64.cdx.json", "greeter-linux-arm64", "greeter-linux-arm64.cdx.json", "greeter.tar",
		"silent-linux-amd64", "silent-linux-amd64.cdx.json", "silent-linux-arm64", "silent-linux-arm64.cdx.json", "silent.tar",
	}; !slices.Equal(names, want) {
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

func TestOnlyTheProgramsAndPlatformsOfImagesAreInThem(t *testing.T) {
	folder := t.TempDir()
	build(t, fixture(t), folder, "--images", "greeter", "--platforms", "linux/amd64,darwin/arm64")
	files := contents(t, folder)
	want := []string{"SHA256SUMS",
		"greeter-darwin-arm64", "greeter-darwin-arm64.cdx.json", "greeter-linux-amd64", "greeter-linux-amd64.cdx.json", "greeter.tar",
		"silent-darwin-arm64", "silent-darwin-arm64.cdx.json", "silent-linux-amd64", "silent-linux-amd64.cdx.json"}
	if names := slices.Sorted(maps.Keys(files)); !slices.Equal(names, want) {
		t.Errorf("written were %q, not %q", names, want)
	}
	if strings.Contains(files["greeter.tar"], `"os":"darwin"`) {
		t.Error("the image is also for darwin")
	}
}

func TestTheSumsAreThoseThatSha256sumChecks(t *testing.T) {
	folder := t.TempDir()
	printed := build(t, fixture(t), folder, "--platforms", "linux/amd64")
	check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = folder
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
	if lines := strings.Count(read(t, filepath.Join(folder, sums)), "\n"); lines != 6 {
		t.Errorf("%d files are listed, not 6", lines)
	}
	for _, want := range []string{"ctr -n k8s.io images import " + filepath.Join(folder, "greeter.tar"), "podman load", "docker load", "skopeo copy --all oci-archive:",
		"docker.io/kube-queue/greeter:v1.2.3", "silent-linux-amd64.cdx.json", "sha256:"} {
		if !strings.Contains(printed, want) {
			t.Errorf("the table does not show %q:\n%s", want, printed)
		}
	}
}

func TestTheBinaryReportsItsVersion(t *testing.T) {
	folder := t.TempDir()
	build(t, fixture(t), folder, "--programs", "greeter", "--platforms", "linux/"+runtime.GOARCH)
	out, err := exec.Command(filepath.Join(folder, "greeter-linux-"+runtime.GOARCH)).Output()
	if err != nil || string(out) != "greeter v1.2.3\n" {
		t.Errorf("it said %q: %v", out, err)
	}
}

func TestARunReplacesWhatAnEarlierOneWroteAndNothingElse(t *testing.T) {
	source, folder := fixture(t), t.TempDir()
	put(t, filepath.Join(folder, "mine.tar"), "mine")
	build(t, source, folder)
	build(t, source, folder, "--programs", "silent", "--platforms", "linux/amd64")
	want := []string{"SHA256SUMS", "mine.tar", "silent-linux-amd64", "silent-linux-amd64.cdx.json", "silent.tar"}
	if names := slices.Sorted(maps.Keys(contents(t, folder))); !slices.Equal(names, want) {
		t.Errorf("there are %q, not %q", names, want)
	}
}

func TestAStoppedRunLeavesWhatWasThere(t *testing.T) {
	for _, at := range []string{"building", "packing silent"} {
		t.Run("while "+at, func(t *testing.T) {
			source, folder := fixture(t), t.TempDir()
			build(t, source, folder, "--platforms", "linux/amd64")
			before := contents(t, folder)
			ctx, stop := context.WithCancel(t.Context())
			err := start(ctx, []string{"--source", source, "--output", folder, "--version", "v2", "--created", "1", "--programs", "greeter,silent",
				"--platforms", "linux/amd64"}, &bytes.Buffer{}, stopAt{at, stop})
			if err == nil || ctx.Err() == nil {
				t.Errorf("it went on: %v", err)
			}
			if !maps.Equal(before, contents(t, folder)) {
				t.Error("files have changed")
			}
		})
	}
}

func TestAProgramThatDoesNotCompileIsNamedWithWhatGoSaid(t *testing.T) {
	source, folder := fixture(t), t.TempDir()
	put(t, filepath.Join(source, "cmd/silent/main.go"), "package main\n\nfunc main() { nowhere() }\n")
	err := start(t.Context(), []string{"--source", source, "--output", folder, "--version", "v1", "--created", "1", "--programs", "silent"},
		&bytes.Buffer{}, &bytes.Buffer{})
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(err.Error(), "building silent for linux/amd64") || !strings.Contains(err.Error(), "undefined: nowhere") {
		t.Errorf("the error is %v", err)
	}
	if files := contents(t, folder); len(files) > 0 {
		t.Errorf("written were %q", slices.Sorted(maps.Keys(files)))
	}
}

func TestAListOfSumsNeverHasAFileOfAnotherFolderRemoved(t *testing.T) {
	folder := t.TempDir()
	outside := filepath.Join(folder, "outside")
	put(t, outside, "mine")
	put(t, filepath.Join(folder, "images", sums), "00  ../outside\n")
	if err := removeEarlier(filepath.Join(folder, "images")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("it was removed: %v", err)
	}
}
