package chart

import (
	"regexp"
	"testing"

	"sigs.k8s.io/yaml"
)

// A release has one version: of the chart, of the images, in the readme and in the changelog.
func TestAReleaseHasOneVersion(t *testing.T) {
	var metadata struct{ Version string }
	if err := yaml.Unmarshal([]byte(read(t, chart+"/Chart.yaml")), &metadata); err != nil {
		t.Fatal(err)
	}
	want := appVersion(t)
	if metadata.Version != want {
		t.Errorf("the version of the chart is %s, and its appVersion %s", metadata.Version, want)
	}
	if named := regexp.MustCompile(`alpha: release (\S+),`).FindStringSubmatch(read(t, root+"/README.md")); named == nil || named[1] != want {
		t.Errorf("README.md names release %q, and the appVersion of the chart is %s", named, want)
	}
	// Changes after a release are in a section of their own until the next one.
	newest := regexp.MustCompile(`(?m)^## ([0-9]\S+)`).FindStringSubmatch(read(t, root+"/CHANGELOG.md"))
	if newest == nil || newest[1] != want {
		t.Errorf("the newest release in CHANGELOG.md is %q, and the appVersion of the chart is %s", newest, want)
	}
}
