package main

import (
	"fmt"
	"strings"
)

// releaseNotes returns the section of the changelog, how to install, and the contents of the
// release.
func (r *release) releaseNotes() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# kube-queue %s\n\n%s\n", r.tag, raised(r.linked(r.section.text)))
	fmt.Fprintf(&b, "\n## Install\n\nRead %s before an upgrade. With Helm 4:\n\n", upgradeFile)
	fmt.Fprintf(&b, "```sh\nhelm install %s oci://%s --version %s \\\n  --namespace kube-queue --create-namespace\n```\n", chartName, r.chartRepository(), r.version)
	for _, v := range r.rendered {
		fmt.Fprintf(&b, "\nWith kubectl, on %s:\n\n```sh\nkubectl apply --server-side -f %s\n```\n", v.For, v.File)
	}
	b.WriteString("\n## Images and chart\n\n| | name | digest |\n|---|---|---|\n")
	for _, p := range r.published {
		fmt.Fprintf(&b, "| %s | `%s` | `%s` |\n", p.what, p.name, p.digest)
	}
	b.WriteString("\n## Files\n\n| file | contents |\n|---|---|\n")
	for _, p := range r.products {
		fmt.Fprintf(&b, "| `%s` | %s |\n", p.name, p.what)
	}
	fmt.Fprintf(&b, "\nTo verify files: `sha256sum --ignore-missing -c %s`. ", sums)
	fmt.Fprintf(&b, "To make them again from the source: `make release VERSION=%s REGISTRY=%s", r.tag, r.registry)
	if r.sourceURL != "" {
		fmt.Fprintf(&b, " SOURCE_URL=%s", r.sourceURL)
	}
	fmt.Fprintf(&b, "` at commit `%s`.\n", r.revision)
	return b.String()
}

// upgradeNotes returns what the changelog says about an upgrade and a rollback, with the commands.
func (r *release) upgradeNotes() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Upgrade to kube-queue %s\n\n", r.tag)
	if r.section.previous != "" {
		fmt.Fprintf(&b, "From the release before, %s. If you pass more releases, read the notes of each of them.\n\n", r.section.previous)
	}
	b.WriteString("## Before the upgrade\n\n")
	if before := r.section.part("Before you upgrade"); before != "" {
		fmt.Fprintf(&b, "%s\n", r.linked(before))
	} else {
		b.WriteString("There is nothing to do.\n")
	}
	fmt.Fprintf(&b, "\n## Upgrade\n\nWith Helm 4:\n\n```sh\nhelm upgrade %s oci://%s --version %s \\\n  --namespace kube-queue --reset-then-reuse-values\n```\n",
		chartName, r.chartRepository(), r.version)
	for _, v := range r.rendered {
		fmt.Fprintf(&b, "\nWith kubectl, on %s:\n\n```sh\nkubectl apply --server-side -f %s\n```\n", v.For, v.File)
	}
	b.WriteString("\nRunning jobs continue, and waiting jobs keep their place.\n\n## Roll back\n\n")
	if before := r.section.part("Before a rollback"); before != "" {
		fmt.Fprintf(&b, "%s\n\n", r.linked(before))
	}
	b.WriteString("Then run `helm rollback kube-queue --namespace kube-queue`, or apply the manifests of the release before.\n")
	return b.String()
}
