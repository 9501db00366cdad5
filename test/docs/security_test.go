package docs

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

// Each claim of the page has a proof.
func TestEachTestThatTheThreatModelNamesExists(t *testing.T) {
	repository := os.DirFS("../..")
	exist := map[string]bool{}
	err := fs.WalkDir(repository, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != "." {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(repository, path)
		for _, match := range testFunction.FindAllStringSubmatch(string(text), -1) {
			exist[match[1]] = true
		}
		return err
	})
	require.NoError(t, err)
	page, err := fs.ReadFile(repository, "docs/security.md")
	require.NoError(t, err)
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(page), -1)
	for _, match := range named {
		if !exist[match[1]] {
			t.Errorf("docs/security.md names %s, which does not exist", match[1])
		}
	}
	if len(named) < 30 {
		t.Errorf("only %d tests are named", len(named))
	}
}
