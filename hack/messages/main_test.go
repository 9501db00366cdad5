package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

const base = "testdata/base.txtar"

// TestWhatIsListed runs the generator on small products. A case lists its messages in the
// file "want", after those of the base, or what the generator reports in "problems".
func TestWhatIsListed(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) < 2 {
		t.Fatal(cases, err)
	}
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			root, files := planted(t, file)
			c, problems := analyze(t, root)
			if got, want := placesOf(problems), lines(files["problems"]); !slices.Equal(got, want) {
				t.Errorf("problems are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if len(problems) > 0 {
				return
			}
			want := lines(files["want"])
			if file != base {
				want = append(want, lines(read(t, base)["want"])...)
			}
			got := listedIn(c)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("the catalogue is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestTheComparisonFails shows what make verify does: it compares the page with the one that
// is generated.
func TestTheComparisonFails(t *testing.T) {
	pageOf := func(file string) string {
		root, _ := planted(t, file)
		text, err := generate(root)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before, after := pageOf(base), pageOf("testdata/new.txtar")
	if again := pageOf(base); again != before {
		t.Errorf("the second time the page is\n%s\nnot\n%s", again, before)
	}
	const row = "| `a planted message: %d jobs are left` | `pkg/queue` |\n"
	_, events, _ := strings.Cut(after, "## Events\n")
	if strings.Contains(before, row) || strings.Replace(after, row, "", 1) != before || !strings.Contains(events, row) {
		t.Errorf("with a new message, the page is\n%s\nnot that row more than\n%s", after, before)
	}
}

func TestAProblemStopsTheGenerator(t *testing.T) {
	root, _ := planted(t, "testdata/format.txtar")
	_, err := generate(root)
	if err == nil || !strings.Contains(err.Error(), "pkg/queue/queue.go:11") {
		t.Errorf("the generator reports %v, not the place of the format", err)
	}
}

func TestASinkThatIsNoLongerFoundStopsTheGenerator(t *testing.T) {
	root, _ := planted(t, base)
	write(t, root, "pkg/lifecycle/status.go", "package lifecycle\n\nfunc Shorten(message string) string { return message }\n\n"+
		"func Waiting(string) map[string]any { return nil }\n")
	_, err := generate(root)
	if err == nil || !strings.Contains(err.Error(), "Status of a QueueUnit") {
		t.Errorf("the generator reports %v, not that nothing writes a status", err)
	}
}

func TestTextsOfExpressions(t *testing.T) {
	for _, c := range []struct {
		expression, want, problem string
	}{
		{"'a unit'", "a unit", ""},
		{`'a unit of ' + variables.kind + " is 'held'"`, "a unit of %s is 'held'", ""},
		{"has(a.?b) ? 'one' : 'other ' + (c ? 'this' : 'that')", "one|other this|other that", ""},
		{"'list: ' + names.map(n, 'a' + n).join(', ')", "list: %s", ""},
		{"variables.message", "", "no text of the message is found"},
		{"'not closed", "", "a quote is not closed"},
		{`'a \' quote'`, "", "not supported"},
		{"a ? 'one' : b ? 'two' : 'three'", "", "use parentheses"},
		{"'one' +", "", "an operand is missing"},
	} {
		texts, err := templates(c.expression)
		if got := strings.Join(texts, "|"); got != c.want {
			t.Errorf("the texts of %s are %q, want %q", c.expression, got, c.want)
		}
		if (err != nil) != (c.problem != "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s is refused with %v, want %q", c.expression, err, c.problem)
		}
	}
}

func TestARuleWithoutMessageIsRefused(t *testing.T) {
	root, _ := planted(t, base)
	write(t, root, "deploy/policies/bare.yaml", "spec:\n  validations:\n  - expression: a\n")
	if _, err := answers(root, rendered...); err == nil || !strings.Contains(err.Error(), "bare.yaml") {
		t.Errorf("a rule without a message gives %v", err)
	}
}

func TestTextsAreWrittenAsTheyAre(t *testing.T) {
	for text, want := range map[string]string{
		"plain %s": "`plain %s`",
		"a | b\nc": "`a \\| b\\nc`",
		"a `b`":    "`` a `b` ``",
	} {
		if got := code(text); got != want {
			t.Errorf("%q is written %s, want %s", text, got, want)
		}
	}
}

// planted writes the base and a case over it, and returns the folder and the files.
func planted(t *testing.T, file string) (root string, files map[string]string) {
	root = t.TempDir()
	for _, archive := range []string{base, file} {
		files = read(t, archive)
		for name, text := range files {
			if strings.Contains(name, ".") {
				write(t, root, name, text)
			}
		}
	}
	return root, files
}

func write(t *testing.T, root, name, text string) {
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) map[string]string {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
	}
	return files
}

func analyze(t *testing.T, root string) (*catalogue, []problem) {
	p, err := load(root, product...)
	if err != nil {
		t.Fatal(err)
	}
	policies, err := answers(root, rendered...)
	if err != nil {
		t.Fatal(err)
	}
	c, problems, err := catalog(findSinks(newFlow(p), p.module), policies)
	if err != nil {
		t.Fatal(err)
	}
	return c, problems
}

// placesOf writes problems without columns.
func placesOf(problems []problem) []string {
	var list []string
	for _, p := range problems {
		p.pos.Column = 0
		list = append(list, p.String())
	}
	return list
}

func listedIn(c *catalogue) []string {
	var list []string
	for _, s := range c.sections {
		for _, e := range s.entries {
			list = append(list, strings.TrimSpace(s.title+": "+e.text))
		}
	}
	for _, e := range c.parts {
		list = append(list, strings.TrimSpace("part: "+e.text))
	}
	return list
}

func lines(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}
