// Package whole makes the release of the real programs, like the release workflow.
package whole

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/yaml"
)

// platforms are the platforms of the release. In short mode, it is only that of this machine, which takes a quarter of
// the time of four, and other builds may have left its packages in Go's cache.
func platforms() string {
	if testing.Short() {
		return "linux/" + runtime.GOARCH
	}
	return "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64"
}

// The commands of the workflow run in one clone, with a registry on this machine. A second clone gives the same files.
// In short mode, it makes only the chart and the manifests: the test of hack/images/release compares programs and
// images from two other folders.
func TestTheWorkflowPublishesTheReleaseThatAnotherCloneGives(t *testing.T) {
	source, version := clone(t), chartVersion(t)
	address := serveRegistry(t)
	bin, published := standIn(t)
	r := &runner{t: t, folder: source, bin: bin, env: map[string]string{"PLATFORMS": platforms(), "PUBLISHED": published, "LC_ALL": "C", "MAKEFLAGS": "", "MAKELEVEL": ""}, values: map[string]string{
		"github.ref_name": "v" + version, "github.repository_owner": "Owner", "github.repository": "Owner/kube-queue",
		"github.server_url": "https://github.example", "github.actor": user, "secrets.GITHUB_TOKEN": password, "vars.REGISTRY": address,
	}}
	release := filepath.Join(source, "bin", "release")
	actions := r.job(readWorkflow(t, "release.yaml"), "publish")
	for _, action := range actions {
		if sums, attests := action.With["subject-checksums"]; attests && sums != "bin/release/SHA256SUMS" {
			t.Errorf("%s attests %s", action.Uses, sums)
		}
	}

	expectSame(t, source, release, version, address)
	expectPublished(t, release, published, version)
	notes := read(t, filepath.Join(release, "RELEASE-NOTES.md"))
	for _, program := range []string{"kube-queue-controller", "job-extensions", "kube-queue-web"} {
		expectImage(t, address+"/kube-queue/"+program+":"+version, program+" "+version+"\n", notes)
	}
	expectBinary(t, release, version)
	expectChart(t, filepath.Join(source, "bin", "tools", "helm"), address, version, release)
}

// expectSame makes the release again in another clone with other settings, and compares the files.
func expectSame(t *testing.T, source, release, version, address string) {
	t.Helper()
	other, output := filepath.Join(t.TempDir(), "a", "clone"), filepath.Join(t.TempDir(), "other")
	run(t, "git", "clone", "--quiet", source, other)
	tools := filepath.Join(source, "bin", "tools")
	args := []string{"make", "--source", other, "--output", output, "--version", "v" + version, "--registry", address,
		"--source-url", "https://github.example/Owner/kube-queue", "--platforms", platforms(),
		"--helm", filepath.Join(tools, "helm")}
	if testing.Short() {
		commit := strings.Fields(run(t, "git", "-C", other, "log", "-1", "--format=%ct %H"))
		args = append(args, "--chart-only", "--created", commit[0], "--revision", commit[1])
	}
	for setting, value := range map[string]string{"TZ": "Asia/Tokyo", "LANG": "de_DE.UTF-8", "GOFLAGS": "-tags=other", "HELM_NAMESPACE": "other"} {
		t.Setenv(setting, value)
	}
	run(t, filepath.Join(tools, "release"), args...)
	one, two := read(t, filepath.Join(release, "SHA256SUMS")), read(t, filepath.Join(output, "SHA256SUMS"))
	if !testing.Short() && one != two {
		t.Errorf("the first clone gives\n%sand the second\n%s", one, two)
	}
	for line := range strings.Lines(two) {
		// The notes list all files.
		if !strings.Contains(one, line) && !strings.HasSuffix(line, "RELEASE-NOTES.md\n") {
			t.Errorf("the second clone gives %q, and the first\n%s", line, one)
		}
	}
}

// expectPublished compares the arguments of gh with the files of the release.
func expectPublished(t *testing.T, release, published, version string) {
	t.Helper()
	var want strings.Builder
	want.WriteString("release create v" + version + " --verify-tag --title kube-queue v" + version + " --notes-file bin/release/RELEASE-NOTES.md")
	entries, err := os.ReadDir(release)
	must(t, err)
	for _, entry := range entries {
		want.WriteString(" bin/release/" + entry.Name())
		if entry.Name() != "SHA256SUMS" && !strings.Contains(read(t, filepath.Join(release, "SHA256SUMS")), "  "+entry.Name()+"\n") {
			t.Errorf("SHA256SUMS lacks %s", entry.Name())
		}
	}
	if got := read(t, published); got != want.String()+"\n" {
		t.Errorf("gh is called with\n%s\nwant\n%s", got, want.String())
	}
}

// expectImage pulls an image, compares its digest with the release notes, and runs its program.
func expectImage(t *testing.T, image, says, notes string) {
	t.Helper()
	reference, err := name.NewTag(image)
	must(t, err)
	index, err := remote.Get(reference, remote.WithAuth(credentials), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	must(t, err)
	if !strings.Contains(notes, "`"+image+"` | `"+index.Digest.String()+"`") {
		t.Errorf("the notes do not list %s with digest %s:\n%s", image, index.Digest, notes)
	}
	forThisMachine, err := index.Image()
	must(t, err)
	program := filepath.Join(t.TempDir(), "program")
	must(t, os.WriteFile(program, entrypoint(t, forThisMachine), 0o755))
	if said := run(t, program, "--version"); said != says {
		t.Errorf("the program of %s says %q, want %q", image, said, says)
	}
}

// expectBinary runs a program from its archive.
func expectBinary(t *testing.T, release, version string) {
	t.Helper()
	folder := t.TempDir()
	archive := filepath.Join(release, "kube-queue-simulator-"+version+"-linux-"+runtime.GOARCH+".tar.gz")
	run(t, "tar", "-xzf", archive, "-C", folder)
	if said := run(t, filepath.Join(folder, "kube-queue-simulator"), "--version"); !strings.Contains(said, version) {
		t.Errorf("kube-queue-simulator --version says %q", said)
	}
}

// expectChart pulls the chart with helm, and compares it with the package of the release. The manifests of the release
// name the images of the registry.
func expectChart(t *testing.T, helm, address, version, release string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	run(t, helm, "registry", "login", address, "--plain-http", "--username", user, "--password", password)
	run(t, helm, "pull", "oci://"+address+"/kube-queue/charts/kube-queue", "--plain-http", "--version", version, "--destination", home)
	pulled := "kube-queue-" + version + ".tgz"
	if read(t, filepath.Join(home, pulled)) != read(t, filepath.Join(release, pulled)) {
		t.Error("helm pulls another chart than that of the release")
	}
	manifests := read(t, filepath.Join(release, "install.yaml"))
	for _, program := range []string{"kube-queue-controller", "job-extensions"} {
		if want := "image: " + address + "/kube-queue/" + program + ":" + version + "\n"; !strings.Contains(manifests, want) {
			t.Errorf("install.yaml has no %q", want)
		}
	}
	if found := regexp.MustCompile(`(?m)^ +image: .*$`).FindAllString(manifests, -1); len(found) != 2 {
		t.Errorf("install.yaml has the images %q", found)
	}
}

const user, password = "publisher", "a secret"

var credentials = &authn.Basic{Username: user, Password: password}

// serveRegistry serves an empty registry for one user, and returns its address.
func serveRegistry(t *testing.T) string {
	t.Helper()
	stored := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if name, given, ok := request.BasicAuth(); !ok || name != user || given != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		stored.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// standIn returns a folder with a fake gh that writes its arguments to a file.
func standIn(t *testing.T) (bin, published string) {
	t.Helper()
	bin = t.TempDir()
	must(t, os.WriteFile(filepath.Join(bin, "gh"), []byte("#!/bin/sh\n[ -n \"$GH_TOKEN\" ] && echo \"$*\" >\"$PUBLISHED\"\n"), 0o755))
	return bin, filepath.Join(bin, "published")
}

// clone returns a git repository with a copy of the sources of a release.
func clone(t *testing.T) string {
	t.Helper()
	root, folder := "../../..", filepath.Join(t.TempDir(), "source")
	for _, name := range []string{"apis", "charts", "cmd", "extensions", "hack", "pkg"} {
		must(t, os.CopyFS(filepath.Join(folder, name), os.DirFS(filepath.Join(root, name))))
	}
	for _, name := range []string{"go.mod", "go.sum", "LICENSE", "CHANGELOG.md", "Makefile", ".gitignore"} {
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(read(t, filepath.Join(root, name))), 0o644))
	}
	for _, args := range [][]string{
		{"init", "--quiet"}, {"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@example.test", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message", "x"},
	} {
		run(t, "git", append([]string{"-C", folder}, args...)...)
	}
	return folder
}

// chartVersion is the version of the release that the source can make.
func chartVersion(t *testing.T) string {
	t.Helper()
	var chart struct{ Version string }
	must(t, yaml.Unmarshal([]byte(read(t, "../../../charts/kube-queue/Chart.yaml")), &chart))
	return chart.Version
}

// entrypoint is the program of the image for this machine.
func entrypoint(t *testing.T, image v1.Image) []byte {
	t.Helper()
	config, err := image.ConfigFile()
	must(t, err)
	files := mutate.Extract(image)
	defer files.Close()
	for r := tar.NewReader(files); ; {
		header, err := r.Next()
		if err != nil {
			t.Fatalf("the image has no file %s: %v", config.Config.Entrypoint[0], err)
		}
		if "/"+header.Name != config.Config.Entrypoint[0] {
			continue
		}
		data, err := io.ReadAll(r)
		must(t, err)
		return data
	}
}

// must ends the test if err is not nil.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
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
	must(t, err)
	return string(data)
}
