package main

import (
	"bytes"
	"embed"
	"text/template"
)

// templates are the release notes, the upgrade notes and the manifest of the plugin for an index of krew.
//
//go:embed templates
var templates embed.FS

// archive is an archive of the plugin, as krew selects it.
type archive struct{ OS, Arch, Name, Sum string }

// addNotes adds the files with a template.
func (r *release) addNotes() error {
	// krew downloads the archives, so there is no manifest without the address of the releases.
	if r.sourceURL != "" && len(r.archives) > 0 {
		if err := r.addNote("kube-queue.yaml", "the plugin for an index of krew"); err != nil {
			return err
		}
	}
	if err := r.addNote("UPGRADE.md", "what to do before an upgrade"); err != nil {
		return err
	}
	return r.addNote("RELEASE-NOTES.md", "")
}

func (r *release) addNote(name, what string) error {
	parsed, err := template.New(name+".tmpl").Option("missingkey=error").ParseFS(templates, "templates/"+name+".tmpl")
	if err != nil {
		return err
	}
	var out bytes.Buffer
	err = parsed.Execute(&out, map[string]any{
		"Tag": r.tag, "Version": r.version, "Registry": r.registry, "Chart": r.chartRepository(), "SourceURL": r.sourceURL, "Revision": r.revision,
		// The section of the changelog, and its parts about an upgrade and a rollback.
		"Changes": raised(r.linked(r.section.text)), "Before": r.linked(r.section.part("Before you upgrade")),
		"Rollback": r.linked(r.section.part("Before a rollback")), "Previous": r.section.previous,
		"Variants": variants, "Published": r.published, "Files": r.files, "Archives": r.archives,
	})
	r.add(name, what, out.Bytes())
	return err
}
