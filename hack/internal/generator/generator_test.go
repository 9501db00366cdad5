package generator

import (
	"os"
	"path/filepath"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

const begin, end = "<!-- BEGIN -->\n", "<!-- END -->\n"

func TestATextTakesTheOldOnesPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docs", "page.md")
	edits := []Edit{Between(begin, end, "new\n")}
	require.NoError(t, Rewrite(path, append([]Edit{Whole("# Page\n\n" + begin + "old\n" + end + "\nmore\n")}, edits...)...))
	for _, when := range []string{"first", "second"} {
		got, err := os.ReadFile(path)
		if want := "# Page\n\n" + begin + "new\n" + end + "\nmore\n"; err != nil || string(got) != want {
			t.Errorf("the %s time it becomes\n%s%v, want\n%s", when, got, err, want)
		}
		require.NoError(t, Rewrite(path, edits...))
	}
}

func TestMarksInTheWrongOrderAreAnError(t *testing.T) {
	if _, err := Between(begin, end, "new\n")(end + begin); err == nil {
		t.Error("marks in the wrong order are taken for right")
	}
}

func TestATableHasARowForEach(t *testing.T) {
	got := Table([]string{"name", "meaning"}, [][]string{{Codes([]string{"a", "b"}, ", "), "both"}, {Codes(nil, ", "), "none"}})
	if want := "| name | meaning |\n|---|---|\n| `a`, `b` | both |\n|  | none |\n"; got != want {
		t.Errorf("the table is\n%s, want\n%s", got, want)
	}
}
