package text

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func table() *Table {
	t := &Table{Columns: []Column{{Title: "NAME", Least: 8}, {Title: "QUEUE", Least: 8}, {Title: "USED", Right: true}, {Title: "REASON"}}}
	t.Add("job/a-name-that-is-long", "company-research", "5", "MaxJobs")
	t.AddCells(Cell{Text: "job/b"}, Cell{}, Cell{Text: "1500m"}, Cell{Text: "QuotaExceeded", Colour: Yellow})
	return t
}

func written(t *testing.T, table *Table, style Style, header bool) string {
	t.Helper()
	var out strings.Builder
	if err := table.Write(&out, style, header); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestATableHasItsFullWidthWhereThereIsNoTerminal(t *testing.T) {
	want := "" +
		"NAME                      QUEUE               USED   REASON\n" +
		"job/a-name-that-is-long   company-research       5   MaxJobs\n" +
		"job/b                                        1500m   QuotaExceeded\n"
	if got := written(t, table(), Style{}, true); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := written(t, table(), Style{}, false); got != want[strings.Index(want, "\n")+1:] {
		t.Errorf("without a header:\n%s", got)
	}
}

func TestATableFitsTheTerminal(t *testing.T) {
	got := written(t, table(), Style{Width: 50}, true)
	want := "" +
		"NAME          QUEUE           USED   REASON\n" +
		"job/a-name…   company-res…       5   MaxJobs\n" +
		"job/b                        1500m   QuotaExceeded\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for line := range strings.Lines(got) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 50 {
			t.Errorf("%q is too long", line)
		}
	}
	// Columns keep their least width, or their content would be unreadable.
	if got := written(t, table(), Style{Width: 5}, true); !strings.Contains(got, "job/a-n…   company…") {
		t.Errorf("a terminal without room:\n%s", got)
	}
}

func TestColoursChangeNoWidthAndAreOnlyWhereTheStyleHasThem(t *testing.T) {
	plain := written(t, table(), Style{}, true)
	if strings.Contains(plain, "\x1b") {
		t.Error("colours without a terminal")
	}
	painted := written(t, table(), Style{Colour: true}, true)
	if !strings.Contains(painted, "\x1b[33mQuotaExceeded\x1b[0m") {
		t.Errorf("no colour in %q", painted)
	}
	if got := strings.NewReplacer("\x1b[33m", "", "\x1b[0m", "").Replace(painted); got != plain {
		t.Errorf("got\n%swant\n%s", got, plain)
	}
}

func TestTextsOfOthersCannotControlTheTerminal(t *testing.T) {
	table := &Table{Columns: []Column{{Title: "NAME"}}}
	table.Add("a\x1b[31m\nb\u009bc")
	if got := written(t, table, Style{}, false); got != "a [31m b c\n" {
		t.Errorf("got %q", got)
	}
}

func TestTruncateCountsCharacters(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{{"übergröße", 9, "übergröße"}, {"übergröße", 4, "übe…"}, {"ab", 1, "…"}, {"ab", 0, ""}} {
		if got := Truncate(c.text, c.width); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func TestTextIsWrappedBetweenWords(t *testing.T) {
	var out strings.Builder
	Wrap(&out, "  ", "insufficient cpu in quota company/research: requested 3", 31)
	if want := "  insufficient cpu in quota\n  company/research: requested 3\n"; out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
	out.Reset()
	Wrap(&out, "", "one two", 0)
	if out.String() != "one two\n" {
		t.Errorf("without a terminal: %q", out.String())
	}
}

func TestABarShowsWhatIsUsedBorrowedAndFree(t *testing.T) {
	for _, c := range []struct {
		name string
		bar  Bar
		want string
	}{
		{"nothing", Bar{Max: 10}, "··········"},
		{"a half", Bar{Used: 5, Max: 10}, "█████·····"},
		{"some of it borrowed", Bar{Used: 5, Borrowed: 2, Max: 10}, "███▒▒·····"},
		{"little is still visible", Bar{Used: 0.01, Max: 10}, "█·········"},
		{"all", Bar{Used: 10, Borrowed: 10, Max: 10}, "▒▒▒▒▒▒▒▒▒▒"},
		{"more than all", Bar{Used: 15, Borrowed: 5, Max: 10}, "██████████"},
		{"no limit", Bar{Used: 15}, ""},
	} {
		if got := c.bar.Draw(10); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAges(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for want, since := range map[string]time.Time{"36s": now.Add(-36 * time.Second), "0s": now.Add(time.Minute), "<unknown>": {}} {
		if got := Age(since, now); got != want {
			t.Errorf("%v: %s, want %s", since, got, want)
		}
	}
	if Count(1, "job") != "1 job" || Count(2, "job") != "2 jobs" {
		t.Error("counts")
	}
}
