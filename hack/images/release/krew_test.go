package main

import (
	"strings"
	"testing"
)

func TestAnIndexOfKrewGetsAManifestWithTheArchivesOfTheRelease(t *testing.T) {
	r := &release{options: &options{tag: "v1.2.3", version: "1.2.3", sourceURL: "https://example.com/kube-queue/", platforms: "linux/amd64, darwin/arm64,linux/arm64"}}
	r.add("kubectl-kube_queue-1.2.3-linux-amd64.tar.gz", "", []byte("one"))
	r.add("kubectl-kube_queue-1.2.3-darwin-arm64.tar.gz", "", []byte("two"))
	r.add("kube-queue-simulator-1.2.3-linux-arm64.tar.gz", "", []byte("three"))
	r.krew()
	manifest := r.products[len(r.products)-1]
	if manifest.name != "kube-queue.yaml" {
		t.Fatalf("the last file is %s", manifest.name)
	}
	text := string(manifest.data)
	for _, want := range []string{
		"  name: kube-queue\n", "  version: v1.2.3\n", "> FOLDER-IN-PATH/kubectl_complete-kube_queue\n",
		"        os: linux\n        arch: amd64\n    uri: https://example.com/kube-queue/releases/download/v1.2.3/kubectl-kube_queue-1.2.3-linux-amd64.tar.gz\n    sha256: " + sum([]byte("one")) + "\n    bin: kubectl-kube_queue\n",
		"        os: darwin\n        arch: arm64\n    uri: https://example.com/kube-queue/releases/download/v1.2.3/kubectl-kube_queue-1.2.3-darwin-arm64.tar.gz\n    sha256: " + sum([]byte("two")) + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the manifest does not have %q:\n%s", want, text)
		}
	}
	if strings.Count(text, "selector:") != 2 || strings.Contains(text, "%!") {
		t.Errorf("the manifest is\n%s", text)
	}
}

func TestWithoutTheAddressOfReleasesThereIsNoManifestForKrew(t *testing.T) {
	for _, r := range []*release{
		{options: &options{tag: "v1.2.3", version: "1.2.3", platforms: "linux/amd64"}},
		{options: &options{tag: "v1.2.3", version: "1.2.3", platforms: "linux/arm64", sourceURL: "https://example.com"}},
	} {
		r.add("kubectl-kube_queue-1.2.3-linux-amd64.tar.gz", "", []byte("one"))
		if r.krew(); len(r.products) != 1 {
			t.Errorf("there is %s", r.products[1].name)
		}
	}
}
