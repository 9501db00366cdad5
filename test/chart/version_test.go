package chart

import (
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// metadata has the versions of Chart.yaml.
func metadata(t *testing.T) (m struct{ Version, AppVersion string }) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, chart+"/Chart.yaml")), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// A release has one version: in the chart, the images, the readme and the changelog.
func TestAReleaseHasOneVersion(t *testing.T) {
	want := metadata(t).AppVersion
	if version := metadata(t).Version; version != want {
		t.Errorf("the version of the chart is %s, and its appVersion %s", version, want)
	}
	if named := regexp.MustCompile(`alpha: release (\S+),`).FindStringSubmatch(read(t, root+"/README.md")); named == nil || named[1] != want {
		t.Errorf("README.md names release %q, and the appVersion of the chart is %s", named, want)
	}
	// Until the next release, changes are in a separate section.
	newest := regexp.MustCompile(`(?m)^## ([0-9]\S+)`).FindStringSubmatch(read(t, root+"/CHANGELOG.md"))
	if newest == nil || newest[1] != want {
		t.Errorf("the newest release in CHANGELOG.md is %q, and the appVersion of the chart is %s", newest, want)
	}
}

var madeAs = regexp.MustCompile(`(?:VERSION=|kube-queue --version |images --version |/job-extensions:)(v?[0-9][0-9.]*[0-9])`)

// The commands in the documentation must build the images in the manifests.
func TestDocumentedCommandsBuildTheImagesOfTheChart(t *testing.T) {
	want := metadata(t).AppVersion
	for file, command := range map[string]string{
		"README.md":                   "/charts/kube-queue --version " + want,
		"docs/operations/install.md":  "make images VERSION=" + want,
		"docs/development/images.md":  "make images VERSION=" + want,
		"charts/kube-queue/README.md": "make images VERSION=" + want,
	} {
		// A command can be split over two lines.
		text := strings.Join(strings.Fields(read(t, root+"/"+file)), " ")
		found := madeAs.FindAllStringSubmatch(text, -1)
		if !strings.Contains(text, command) {
			t.Errorf("%s does not say %s", file, command)
		}
		for _, version := range found {
			if version[1] != want {
				t.Errorf("%s has %q, and the chart's appVersion is %s", file, version[0], want)
			}
		}
	}
	for _, name := range []string{controller, extensions} {
		if manifest := read(t, root+"/deploy/programs/"+name+".yaml"); !strings.Contains(manifest, "/"+name+":"+want+"\n") {
			t.Errorf("the image in deploy/programs/%s.yaml is not tagged %s", name, want)
		}
	}
}
