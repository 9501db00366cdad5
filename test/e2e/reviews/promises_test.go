package reviews

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/harness"
)

// promises are what the page of the reasons has: examples of messages, by reason. formats are those of all messages of units.
type promises struct {
	examples map[string][]string
	formats  []*regexp.Regexp
	// reasons are all reasons of units that wait.
	reasons []string
}

// leastOfFormat is how many characters a format has at least that are not verbs. Shorter ones fit almost any message.
const leastOfFormat = 20

var (
	verb = regexp.MustCompile(`%[a-z]`)
	// listed is a row of the table of reasons, and row one of the table of messages.
	listed = regexp.MustCompile("^\\| \\[`(\\w+)`\\]")
	row    = regexp.MustCompile("^\\| `(.*)` \\| `pkg/|^\\| `(.*)` \\| `extensions/")
)

func readPromises(t *testing.T) *promises {
	t.Helper()
	p := &promises{examples: map[string][]string{}}
	section := ""
	for line := range strings.Lines(page(t, "reasons.md")) {
		line = strings.TrimSpace(line)
		if found := listed.FindStringSubmatch(line); found != nil && section == "Reasons" {
			p.reasons = append(p.reasons, found[1])
		}
		switch {
		case strings.HasPrefix(line, "#"):
			section = strings.TrimLeft(line, "# ")
		case strings.HasPrefix(line, "> "):
			p.examples[section] = append(p.examples[section], strings.TrimPrefix(line, "> "))
		case strings.HasPrefix(line, "|"):
			for cell := range strings.SplitSeq(line, " | ") {
				p.examples[section] = append(p.examples[section], strings.Trim(cell, "| "))
			}
		}
	}
	_, units, _ := strings.Cut(page(t, "messages.md"), "\n## Status of a QueueUnit\n")
	units, _, _ = strings.Cut(units, "\n## ")
	for line := range strings.Lines(units) {
		found := row.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		format := found[1] + found[2]
		if len(verb.ReplaceAllString(format, "")) < leastOfFormat {
			continue
		}
		parts := verb.Split(format, -1)
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		p.formats = append(p.formats, regexp.MustCompile("^"+strings.Join(parts, ".*")+"$"))
	}
	if len(p.examples) == 0 || len(p.formats) == 0 || len(p.reasons) == 0 {
		t.Fatalf("the pages have %d sections with examples, %d formats and %d reasons", len(p.examples), len(p.formats), len(p.reasons))
	}
	for reason := range p.examples {
		if p.has(reason, "another message") {
			t.Fatalf("any message is promised for %s", reason)
		}
	}
	return p
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(suite.Repository, "docs", "reference", name))
	harness.Must(t, err)
	return string(text)
}

// has reports whether the page promises the message: whether it has an example for the reason with the same format.
func (p *promises) has(reason, message string) bool {
	for _, format := range p.formats {
		if !format.MatchString(message) {
			continue
		}
		for _, example := range p.examples[reason] {
			if format.MatchString(example) {
				return true
			}
		}
	}
	return false
}
