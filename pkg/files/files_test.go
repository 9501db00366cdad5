package files

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

func TestAFolderMeansItsManifests(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "below"), 0o700))
	for _, name := range []string{"b.yaml", "a.yml", "below/c.json", "README.md"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(name), 0o600))
	}
	all, err := Expand(root, "the trees")
	if want := []string{filepath.Join(root, "a.yml"), filepath.Join(root, "b.yaml"), filepath.Join(root, "below/c.json")}; err != nil || !slices.Equal(all, want) {
		t.Errorf("%q, %v; want %q", all, err, want)
	}
	for _, arg := range []string{StandardInput, filepath.Join(root, "README.md")} {
		if one, err := Expand(arg, "the trees"); err != nil || !slices.Equal(one, []string{arg}) {
			t.Errorf("%s means %q, %v", arg, one, err)
		}
	}
	if _, err := Expand(filepath.Join(root, "absent"), "the trees"); err == nil || !strings.HasPrefix(err.Error(), "reading the trees: ") {
		t.Errorf("a file that does not exist: %v", err)
	}
}

func TestTheStandardInputIsAFile(t *testing.T) {
	file, shown, err := Open(StandardInput, "the trees", strings.NewReader("text"))
	if err != nil || shown != "standard input" {
		t.Fatal(shown, err)
	}
	text, err := io.ReadAll(file)
	if err != nil || string(text) != "text" || file.Close() != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, _, err := Open(filepath.Join(t.TempDir(), "absent"), "the trees", nil); err == nil || !strings.HasPrefix(err.Error(), "reading the trees: ") {
		t.Errorf("a file that does not exist: %v", err)
	}
}
