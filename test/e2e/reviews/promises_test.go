package reviews

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/harness"
)

// promises are the example messages on the page of the reasons, by reason.
type promises struct {
	examples map[string][][]string
	// reasons are all reasons of units that wait.
	reasons []string
}

// listed is a row of the table of reasons.
var listed = regexp.MustCompile("^\\| \\[`(\\w+)`\\]")

func readPromises(t *testing.T) *promises {
	t.Helper()
	p := &promises{examples: map[string][][]string{}}
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
			p.examples[section] = append(p.examples[section], words(line))
		case strings.HasPrefix(line, "|"):
			for cell := range strings.SplitSeq(line, " | ") {
				p.examples[section] = append(p.examples[section], words(cell))
			}
		}
	}
	if len(p.examples) == 0 || len(p.reasons) == 0 {
		t.Fatalf("the page has %d sections with examples and %d reasons", len(p.examples), len(p.reasons))
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

// has reports whether the page promises the message: whether it shares most words with an example of the reason, in
// the same order. Either may end with an object's fault that the other lacks. Names and amounts do not count.
func (p *promises) has(reason, message string) bool {
	said := words(message)
	return slices.ContainsFunc(p.examples[reason], func(example []string) bool {
		common := inCommon(said, example)
		return 2*common > len(said) && 3*common >= 2*min(len(said), len(example))
	})
}

// words are the words of a message without its values. Names contain a slash, a dash, a dot or a quote, and amounts
// contain a digit.
func words(message string) []string {
	return slices.DeleteFunc(strings.Fields(message), func(word string) bool {
		word = strings.Trim(word, ",.:;()|>")
		return word == "" || strings.ContainsAny(word, "0123456789/-.\"`")
	})
}

// inCommon is the length of the longest common subsequence.
func inCommon(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for i, y := range b {
			above := row[i+1]
			if x == y {
				row[i+1] = diagonal + 1
			} else {
				row[i+1] = max(above, row[i])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}
