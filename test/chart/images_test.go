package chart

import (
	"regexp"
	"strings"
	"testing"
)

var madeAs = regexp.MustCompile(`(?:VERSION=|kube-queue --version |images --version |/job-extensions:)(v?[0-9][0-9.]*[0-9])`)

// The commands in the documentation must build the images in the manifests.
func TestDocumentedCommandsBuildTheImagesOfTheChart(t *testing.T) {
	want := appVersion(t)
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
