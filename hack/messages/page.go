package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const intro = `<!-- This page is written by make generate. -->

# Messages

Every message that a user or an administrator of kube-queue may read, except logs. The page
is generated from the code, so a change of a message shows in its diff.

Messages are formats: a verb such as ` + "`%s`" + ` is replaced by a name, a number or
another text. Texts that only appear inside of other messages, in the place of a verb, have
[a table of their own](#texts-inside-of-other-messages). What the API server, an operator or
a library reports is passed on as it is and is not listed.

[Reasons](reasons.md) describes what each reason means and what to do.
`

const parts = "Texts inside of other messages"

// catalogue is what the page lists.
type catalogue struct {
	sections []listing
	// parts are texts that are inserted into messages.
	parts []entry
}

// listing is a section with its messages.
type listing struct {
	section
	entries []entry
}

// entry is a row of a table.
type entry struct {
	text string
	// from are the packages or files that have the text.
	from []string
	// in are the titles of the sections whose messages a part is found in.
	in []string
}

// catalog lists what reaches the sinks, and what the policies answer.
func catalog(s *sinks, policies []answer) (*catalogue, []problem, error) {
	c := &catalogue{}
	problems := slices.Clone(s.problems)
	inserted := map[string]*entry{}
	for _, of := range []section{unitStatus, treeStatus, jobStatus, reviewStatus, event, admission, exit} {
		listed := listing{section: of}
		messages, found := s.collect(of)
		problems = append(problems, found...)
		if of.title == admission.title {
			listed.entries = answerEntries(policies)
		} else if len(s.known[of.title]) == 0 {
			return nil, nil, fmt.Errorf("nothing writes a message of the section %q: hack/messages/sinks.go no longer finds what does", of.title)
		}
		for _, m := range messages {
			from := shorten(s.module, m.packages)
			if !m.part {
				listed.entries = append(listed.entries, entry{text: m.text, from: from})
				continue
			}
			if inserted[m.text] == nil {
				inserted[m.text] = &entry{text: m.text}
			}
			p := inserted[m.text]
			p.from, p.in = append(p.from, from...), append(p.in, of.title)
		}
		c.sections = append(c.sections, listed)
	}
	for _, p := range inserted {
		slices.Sort(p.from)
		p.from = slices.Compact(p.from)
		c.parts = append(c.parts, *p)
	}
	sortEntries(c.parts)
	slices.SortFunc(problems, func(a, b problem) int { return strings.Compare(a.String(), b.String()) })
	return c, slices.Compact(problems), nil
}

func answerEntries(policies []answer) []entry {
	byText := map[string]*entry{}
	for _, a := range policies {
		if byText[a.text] == nil {
			byText[a.text] = &entry{text: a.text}
		}
		byText[a.text].from = append(byText[a.text].from, a.file)
	}
	var entries []entry
	for _, e := range byText {
		slices.Sort(e.from)
		e.from = slices.Compact(e.from)
		entries = append(entries, *e)
	}
	sortEntries(entries)
	return entries
}

func sortEntries(entries []entry) {
	slices.SortFunc(entries, func(a, b entry) int { return compareTexts(a.text, b.text) })
}

// compareTexts orders by letters, whatever their case.
func compareTexts(a, b string) int {
	return cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
}

func shorten(module string, packages []string) []string {
	var short []string
	for _, pkg := range packages {
		short = append(short, strings.TrimPrefix(pkg, module+"/"))
	}
	return short
}

// page writes the catalogue as Markdown.
func page(c *catalogue) string {
	var b strings.Builder
	b.WriteString(intro)
	for _, listed := range c.sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| message | written by |\n|---|---|\n", listed.title, listed.about)
		for _, e := range listed.entries {
			fmt.Fprintf(&b, "| %s | %s |\n", code(e.text), codes(e.from))
		}
	}
	fmt.Fprintf(&b, "\n## %s\n\nEach replaces a verb in messages of the listed sections, or in another text of this table.\n\n"+
		"| text | inside of | written by |\n|---|---|---|\n", parts)
	for _, e := range c.parts {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", code(e.text), strings.Join(e.in, ", "), codes(e.from))
	}
	return b.String()
}

// code writes a text as Markdown that is shown as it is, in one cell of a table.
func code(text string) string {
	text = strings.NewReplacer("\n", `\n`, "\t", `\t`, "|", `\|`).Replace(text)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if fence != "`" || strings.HasPrefix(text, " ") && strings.HasSuffix(text, " ") {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

func codes(texts []string) string {
	var list []string
	for _, text := range texts {
		list = append(list, code(text))
	}
	return strings.Join(list, ", ")
}
