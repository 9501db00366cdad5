package main

import (
	"fmt"
	"regexp"
	"strings"
)

// section is the part of the changelog about one version.
type section struct {
	// version has no v; previous is the version before it, or empty.
	version, previous string
	// text starts with the first line after the heading of the version.
	text string
}

const changelogFile = "CHANGELOG.md"

var versionHeading = regexp.MustCompile(`^## (\d\S*)( \(.*\))?\s*$`)

// sectionOf returns the section of a version. The error lists the versions that have one.
func sectionOf(changelog, version string) (section, error) {
	found, s := false, section{version: version}
	var known []string
	var text strings.Builder
	inside := false
	for line := range strings.Lines(changelog) {
		heading := versionHeading.FindStringSubmatch(line)
		switch {
		case heading != nil:
			inside = heading[1] == version
			if found && s.previous == "" {
				s.previous = heading[1]
			}
			found = found || inside
			known = append(known, heading[1])
		case strings.HasPrefix(line, "## "):
			inside = false
		case inside:
			text.WriteString(line)
		}
	}
	s.text = strings.TrimSpace(text.String())
	switch {
	case !found:
		return s, fmt.Errorf("%s has no section for this release: rename its section %q to %q; versions with a section: %s",
			changelogFile, "## Unreleased", "## "+version+" (DATE)", strings.Join(known, ", "))
	case s.text == "":
		return s, fmt.Errorf("%s: the section of %s is empty: describe what changed", changelogFile, version)
	}
	return s, nil
}

// part returns the text below a heading of the section that starts with these words, or nothing.
func (s section) part(words string) string {
	var text strings.Builder
	inside := false
	for line := range strings.Lines(s.text) {
		if strings.HasPrefix(line, "### ") {
			inside = strings.HasPrefix(line, "### "+words)
			continue
		}
		if inside {
			text.WriteString(line)
		}
	}
	return strings.TrimSpace(text.String())
}

var relativeLink = regexp.MustCompile(`\[([^\]]*)\]\(([^):]+)\)`)

// linked makes links into the source absolute. If the source has no address, it writes the file
// after the text of the link.
func (o *options) linked(text string) string {
	return relativeLink.ReplaceAllStringFunc(text, func(link string) string {
		part := relativeLink.FindStringSubmatch(link)
		// A line break in the text of a link is only for the width of the source.
		words := strings.Join(strings.Fields(part[1]), " ")
		if o.sourceURL == "" {
			return fmt.Sprintf("%s (`%s`)", words, part[2])
		}
		return fmt.Sprintf("[%s](%s/blob/%s/%s)", words, strings.TrimSuffix(o.sourceURL, "/"), o.tag, part[2])
	})
}

// raised makes the headings of a section those of a page.
func raised(text string) string {
	return regexp.MustCompile(`(?m)^###(#* )`).ReplaceAllString(text, "##$1")
}
