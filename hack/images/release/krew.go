package main

import (
	"fmt"
	"path"
	"strings"
)

const (
	// plugin is the kubectl plugin, and krewFile its manifest for an index of krew. The name of a plugin
	// has dashes where that of its program has underscores.
	plugin     = "kubectl-kube_queue"
	pluginName = "kube-queue"
	krewFile   = pluginName + ".yaml"
	// completionScript is the file of the source with which kubectl completes the plugin.
	completionScript = "pkg/plugin/command/kubectl_complete-kube_queue"
)

// krew adds the manifest with which an index of krew offers the plugin. krew downloads the archives, so
// there is no manifest without the address of the releases.
func (r *release) krew() {
	if r.sourceURL == "" {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: %s
spec:
  version: %s
  homepage: %s
  shortDescription: Show the queue and explain why jobs wait
  description: |
    Shows the jobs that wait for quota or hold it in a cluster with kube-queue, explains why a job
    waits, who holds the quota and what would admit it, and holds, releases and orders jobs.
  caveats: |
    kubectl completes the plugin after:
      kubectl %[1]s completion kubectl > FOLDER-IN-PATH/%[4]s
      chmod +x FOLDER-IN-PATH/%[4]s
  platforms:
`, pluginName, r.tag, r.sourceURL, path.Base(completionScript))
	found := false
	for platform := range strings.SplitSeq(r.platforms, ",") {
		system, arch, _ := strings.Cut(strings.TrimSpace(platform), "/")
		archive := fmt.Sprintf("%s-%s-%s-%s.tar.gz", plugin, r.version, system, arch)
		for _, p := range r.products {
			if p.name != archive {
				continue
			}
			found = true
			fmt.Fprintf(&b, "  - selector:\n      matchLabels:\n        os: %s\n        arch: %s\n    uri: %s/releases/download/%s/%s\n    sha256: %s\n    bin: %s\n",
				system, arch, strings.TrimSuffix(r.sourceURL, "/"), r.tag, archive, sum(p.data), plugin)
		}
	}
	if found {
		r.add(krewFile, "the plugin for an index of krew", []byte(b.String()))
	}
}
