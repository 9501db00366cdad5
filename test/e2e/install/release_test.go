package install

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/built"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/podrunner"
)

// released is the chart and the manifests of the release under test, as users get them.
var released *publishedRelease

// publishedRelease is a release whose chart is in a registry on this machine. It has no images,
// because the pod runner runs programs.
type publishedRelease struct {
	// registry is the address of the registry, and folder the folder of the release.
	registry, folder string
	// version has no v.
	version string
	// stop ends the registry.
	stop func() error
}

// publish makes the release and pushes it.
func publish(folder string) (*publishedRelease, error) {
	const root = "../../.."
	tools, err := built.Programs(context.Background(), "hack/images", "./release", "./registry")
	if err != nil {
		return nil, err
	}
	chart, err := os.ReadFile(filepath.Join(root, "charts", "kube-queue", "Chart.yaml"))
	if err != nil {
		return nil, err
	}
	version := regexp.MustCompile(`(?m)^version: (\S+)$`).FindSubmatch(chart)
	if version == nil {
		return nil, errors.New("Chart.yaml has no version")
	}
	r := &publishedRelease{folder: filepath.Join(folder, "release-files"), version: string(version[1])}
	if err := r.serve(filepath.Join(tools, "registry")); err != nil {
		return nil, fmt.Errorf("starting a registry: %w", err)
	}
	for _, args := range [][]string{
		{"make", "--chart-only", "--source", root, "--output", r.folder, "--version", "v" + r.version, "--registry", r.registry,
			"--created", "1700000000", "--revision", "test", "--helm", helmPath},
		{"push", "--folder", r.folder},
	} {
		if out, err := exec.Command(filepath.Join(tools, "release"), args...).CombinedOutput(); err != nil {
			return nil, errors.Join(fmt.Errorf("release %s: %w\n%s", args[0], err, out), r.stop())
		}
	}
	return r, nil
}

// serve starts a registry, which ends with its standard input.
func (r *publishedRelease) serve(program string) error {
	cmd := exec.Command(program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.stop = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	address, err := bufio.NewReader(out).ReadString('\n')
	r.registry = strings.TrimSpace(address)
	return err
}

// chart is the reference of the chart in the registry.
func (r *publishedRelease) chart() string {
	return "oci://" + r.registry + "/kube-queue/charts/kube-queue"
}

// manifests returns a file of the release, with the annotation that lets its pods run here.
func (r *publishedRelease) manifests(file string) (string, error) {
	text, err := os.ReadFile(filepath.Join(r.folder, file))
	if err != nil {
		return "", err
	}
	documents := strings.Split(string(text), "\n---\n")
	changed := 0
	for i, document := range documents {
		if strings.Contains(document, "\nkind: Deployment\n") {
			const annotations = "      annotations:\n"
			documents[i] = strings.Replace(document, annotations, annotations+"        "+podrunner.Annotation+": "+podrunner.Own+"\n", 1)
			if documents[i] != document {
				changed++
			}
		}
	}
	if changed != len(programs) {
		return "", fmt.Errorf("%s has %d Deployments with annotations of pods, want %d", file, changed, len(programs))
	}
	return strings.Join(documents, "\n---\n"), nil
}

func TestTheChartOfAReleaseIsInstalledAndAFirstJobRuns(t *testing.T) {
	s := begin(t)
	notes := s.helmOf(released.chart(), "install", s.values(""), "--plain-http", "--version="+released.version, "--create-namespace", "--wait")
	s.waitForRollout()
	s.expectImages(released.registry + "/kube-queue/")
	s.enter("default")
	s.expectFirstJob(notes)
	s.waitForAnswer()
}

// install.yaml is what deploy/ has, with the images of the release; install-webhook.yaml has the variant in
// deploy/webhook.
func TestTheManifestsOfAReleaseAreThoseOfDeploy(t *testing.T) {
	for file, folders := range map[string][]string{
		"install.yaml":         {"namespace.yaml", "crds", "rbac", "policies", "programs"},
		"install-webhook.yaml": {"namespace.yaml", "crds", "webhook"},
	} {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(released.folder, file))
			harness.Must(t, err)
			in := objects(string(text))
			var files strings.Builder
			for _, folder := range folders {
				err = filepath.WalkDir(filepath.Join(suite.Repository, "deploy", folder), func(path string, entry os.DirEntry, err error) error {
					if err == nil && entry.IsDir() && entry.Name() == "pods" { // for those who queue pods too
						return filepath.SkipDir
					}
					if err != nil || entry.IsDir() {
						return err
					}
					content, err := os.ReadFile(path)
					files.WriteString("---\n" + string(content))
					return err
				})
				harness.Must(t, err)
			}
			deploy := objects(strings.ReplaceAll(files.String(), "image: kube-queue/", "image: "+released.registry+"/kube-queue/"))
			for object := range deploy {
				if !in[object] {
					t.Errorf("%s has not this object of deploy/:\n%s", file, object)
				}
			}
			if len(in) != len(deploy) {
				t.Errorf("%s has %d objects, deploy/ has %d", file, len(in), len(deploy))
			}
		})
	}
}

// objects are the documents of manifests, without comments and empty lines.
func objects(manifests string) map[string]bool {
	found := map[string]bool{}
	for _, document := range regexp.MustCompile(`(?m)^---$`).Split(manifests, -1) {
		lines := regexp.MustCompile(`(?m)^(#.*)?\n`).ReplaceAllString(document, "")
		if strings.TrimSpace(lines) != "" {
			found[strings.TrimSpace(lines)] = true
		}
	}
	return found
}
