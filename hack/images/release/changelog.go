package main

import (
	"fmt"
	"regexp"
	"strings"
)

const changelogFile = "CHANGELOG.md"

// section is the part of the changelog about one version.
type section struct {
	// previous is the version before it, or empty. text is what is below its heading.
	previous, text string
}

var (
	versionHeading = regexp.MustCompile(`(?m)^## (\d\S*)( \(.*\))?[ \t]*$`)
	subheading     = regexp.MustCompile(`(?m)^###(#* )`)
	relativeLink   = regexp.MustCompile(`\[([^\]]*)\]\(([^):]+)\)`)
)

// sectionOf returns the section of a version. The error lists the versions that have one.
func sectionOf(changelog, version string) (section, error) {
	var s section
	var known []string
	found := -1
	for i, at := range versionHeading.FindAllStringSubmatchIndex(changelog, -1) {
		known = append(known, changelog[at[2]:at[3]])
		switch {
		case known[i] == version:
			found, s.text = i, before(changelog[at[1]:], "\n## ")
		case found >= 0 && i == found+1:
			s.previous = known[i]
		}
	}
	switch {
	case found < 0:
		return s, fmt.Errorf("%s has no section for this release: rename its section %q to %q; versions with a section: %s",
			changelogFile, "## Unreleased", "## "+version+" (DATE)", strings.Join(known, ", "))
	case s.text == "":
		return s, fmt.Errorf("%s: the section of %s is empty: describe what changed", changelogFile, version)
	}
	return s, nil
}

// part returns the text below a heading of the section that starts with these words, or nothing.
func (s section) part(words string) string {
	_, text, _ := strings.Cut("\n"+s.text, "\n### "+words)
	_, text, _ = strings.Cut(text, "\n")
	return before("\n"+text, "\n### ")
}

func before(text, heading string) string {
	text, _, _ = strings.Cut(text, heading)
	return strings.TrimSpace(text)
}

// linked makes links into the source absolute. If the source has no address, it writes the file
// after the text of the link.
func (o *options) linked(text string) string {
	return relativeLink.ReplaceAllStringFunc(text, func(link string) string {
		part := relativeLink.FindStringSubmatch(link)
		// Join the lines of the link text.
		words := strings.Join(strings.Fields(part[1]), " ")
		if o.sourceURL == "" {
			return fmt.Sprintf("%s (`%s`)", words, part[2])
		}
		return fmt.Sprintf("[%s](%s/blob/%s/%s)", words, o.sourceURL, o.tag, part[2])
	})
}

// raised raises the headings of a section to those of a page.
func raised(text string) string { return subheading.ReplaceAllString(text, "##$1") }
