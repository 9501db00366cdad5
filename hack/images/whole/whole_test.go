// Package whole builds the images of the programs themselves, as make images does.
package whole

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// One platform takes half the time of two, and the packages for this one are those that
// other builds may have left in Go's cache.
var platforms = flag.String("platforms", "linux/"+runtime.GOARCH, "platforms to build for, separated by commas, including the platform of this machine")

func TestTwoCopiesOfTheSourceGiveTheSameImagesAndTheirProgramsRun(t *testing.T) {
	program := filepath.Join(t.TempDir(), "images")
	run(t, "go", "build", "-C", "..", "-o", program, ".")
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	for _, output := range []string{first, second} {
		t.Logf("building for %s", *platforms)
		run(t, program, "--source", source(t), "--output", output, "--version", "v0.0.0-test", "--created", "1700000000", "--platforms", *platforms)
	}
	one, two := read(t, filepath.Join(first, "SHA256SUMS")), read(t, filepath.Join(second, "SHA256SUMS"))
	if one != two {
		t.Errorf("the first has\n%sand the second\n%s", one, two)
	}
	for _, name := range []string{"kube-queue-controller", "job-extensions"} {
		binary := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(binary, entrypoint(t, filepath.Join(first, name+".tar")), 0o755); err != nil {
			t.Fatal(err)
		}
		if said := run(t, binary, "--version"); said != name+" v0.0.0-test\n" {
			t.Errorf("%s --version says %q", name, said)
		}
	}
}

// source is a copy of what the programs are built from, in a folder of its own.
func source(t *testing.T) string {
	t.Helper()
	root, folder := "../../..", t.TempDir()
	for _, name := range []string{"apis", "cmd", "extensions", "pkg"} {
		if err := os.CopyFS(filepath.Join(folder, name), os.DirFS(filepath.Join(root, name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum", "LICENSE"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(read(t, filepath.Join(root, name))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// entrypoint is the program of the image for this machine, found as a runtime finds it.
func entrypoint(t *testing.T, archive string) []byte {
	t.Helper()
	folder := t.TempDir()
	run(t, "tar", "-xf", archive, "-C", folder)
	top, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	for _, descriptor := range manifest.Manifests {
		if descriptor.Platform.OS != "linux" || descriptor.Platform.Architecture != runtime.GOARCH {
			continue
		}
		img, err := index.Image(descriptor.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		layers, err := img.Layers()
		if err != nil {
			t.Fatal(err)
		}
		files, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		return find(t, files, strings.TrimPrefix(config.Config.Entrypoint[0], "/"))
	}
	t.Fatalf("%s has nothing for %s", archive, runtime.GOARCH)
	return nil
}

func find(t *testing.T, files io.ReadCloser, name string) []byte {
	t.Helper()
	defer files.Close()
	for r := tar.NewReader(files); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("the image has no file %s", name)
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Name != name {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, &errs)
	}
	return string(out)
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
