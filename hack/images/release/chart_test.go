package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

func TestThePackagedChartHasTheRegistryOfTheRelease(t *testing.T) {
	o := &options{source: fixture(t), version: "1.2.3", registry: "r.test/o", created: at}
	chart, err := o.chartPackage()
	must(t, err)
	again, err := o.chartPackage()
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
	if got, want := files["kube-queue/Chart.yaml"], "annotations:\n  kube-queue.dev/reference: oci://r.test/o/kube-queue/charts/kube-queue --version 1.2.3\n"; !strings.HasSuffix(got, want) {
		t.Errorf("Chart.yaml is\n%s", got)
	}
	if _, err := o.withReference([]byte("annotations: {}\n")); err == nil {
		t.Error("a Chart.yaml without the annotation is accepted")
	}
	for _, values := range []string{"image: {}\n", "other:\n  registry: \"\"\nimage: {}\n", "other:\n  registry: \"\"\nimage:\n  registry: \"\"\n"} {
		if _, err := o.withRegistry([]byte(values)); err == nil {
			t.Errorf("%q is accepted", values)
		}
	}
}

// untar returns the files of a compressed archive by name.
func untar(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	must(t, err)
	data, err := io.ReadAll(unzipped)
	must(t, err)
	files := map[string]string{}
	each(t, data, func(header *tar.Header, data []byte) { files[header.Name] = string(data) })
	return files
}

// each calls do with the files of an archive. All belong to root.
func each(t *testing.T, archive []byte, do func(*tar.Header, []byte)) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		data, err := io.ReadAll(r)
		must(t, err)
		if header.Uid != 0 || header.Gid != 0 || header.Uname != "" {
			t.Errorf("%s is of %d:%d %q", header.Name, header.Uid, header.Gid, header.Uname)
		}
		do(header, data)
	}
}

// packedChart writes a folder with only the archive of a chart.
func packedChart(t *testing.T, registry string) (folder, digest string) {
	t.Helper()
	r := &release{options: &options{source: fixture(t), version: "1.2.3", registry: registry, created: at}}
	archive, d, err := r.chartArchive([]byte("the chart"))
	must(t, err)
	folder = t.TempDir()
	put(t, filepath.Join(folder, "kube-queue-1.2.3-chart.tar"), string(archive))
	return folder, d.String()
}

func expectPushError(t *testing.T, folder, want string, args ...string) {
	t.Helper()
	if _, err := command(t, append([]string{"push", "--folder", folder}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

func TestAReleaseForThePlaceholderIsNotPushed(t *testing.T) {
	folder, _ := packedChart(t, placeholder)
	put(t, filepath.Join(folder, sums), "")
	expectPushError(t, folder, "REGISTRY=ghcr.io/owner")
}

// The test of the release workflow pulls what was pushed, also with helm.
func TestAPushSaysWhatItPushedOrWhyItCouldNot(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	repository := strings.TrimPrefix(server.URL, "http://") + "/o"
	folder, digest := packedChart(t, repository)
	expectPushError(t, folder, "run make release first")
	put(t, filepath.Join(folder, sums), "")
	expectPushError(t, folder, "set --username and --password-stdin together", "--username", "me")
	if out, err := command(t, "push", "--folder", folder); err != nil || !strings.Contains(out, digest) {
		t.Errorf("%v\n%s", err, out)
	}
	server.Close()
	expectPushError(t, folder, repository+"/kube-queue/charts/kube-queue:1.2.3")
}
