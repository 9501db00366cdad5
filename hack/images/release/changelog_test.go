package main

import (
	"strings"
	"testing"
)

func TestTheSectionOfAVersionIsFoundInTheChangelog(t *testing.T) {
	s, err := sectionOf(changelog, "1.2.3")
	must(t, err)
	if !strings.HasPrefix(s.text, "Words with") || !strings.HasSuffix(s.text, "Undo it.") || s.previous != "1.2.2" {
		t.Errorf("before it is %q, and it is %q", s.previous, s.text)
	}
	for words, want := range map[string]string{
		"Before you upgrade": "- Do this. See [how](docs/how.md).",
		"Before a rollback":  "Undo it.",
		"Removed":            "",
	} {
		if part := s.part(words); part != want {
			t.Errorf("%s: the part is %q", words, part)
		}
	}
	for version, want := range map[string]string{
		"1.2.4": `rename its section "## Unreleased" to "## 1.2.4 (DATE)"; versions with a section: 1.2.3, 1.2.2, 1.2.1`,
		"1.2":   "no section",
		"1.2.1": "the section of 1.2.1 is empty",
	} {
		if _, err := sectionOf(changelog, version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v", version, err)
		}
	}
}

func TestWithoutAnAddressOfTheSourceLinksNameFilesAndThereIsNoManifestForKrew(t *testing.T) {
	s, err := sectionOf(changelog, "1.2.3")
	must(t, err)
	r := &release{options: &options{tag: "v1.2.3", version: "1.2.3"}, section: s, archives: []archive{{OS: "linux"}}}
	must(t, r.addNotes())
	if len(r.files) != 2 || r.files[0].Name != "RELEASE-NOTES.md" || r.files[1].Name != "UPGRADE.md" {
		t.Errorf("there are %v", r.files)
	}
	if got, want := string(r.files[0].data), "link over two lines (`docs/a.md#b`) and [one](https://example.test/x) that"; !strings.Contains(got, want) {
		t.Errorf("the notes are\n%s\nwant %s", got, want)
	}
}
