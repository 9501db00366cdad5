package kinds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/examples"
	"kube-queue.dev/kube-queue/test/require"
)

// A page in docs/tasks contains the file that it applies.
func TestEachPageShowsItsExample(t *testing.T) {
	pages := map[string]string{examples.QuotaTree: "give-out-quota.md"}
	for _, sample := range all(t) {
		pages[File(sample.Kind)] = "run-" + strings.ToLower(sample.Kind.Kind) + ".md"
	}
	for file, page := range pages {
		text := textOf(t, "docs", "tasks", page)
		manifest, err := examples.Files.ReadFile(file)
		require.NoError(t, err)
		if !strings.Contains(text, "\n```yaml\n"+string(manifest)+"```\n") {
			t.Errorf("docs/tasks/%s does not show examples/%s as it is: copy the file into a block ```yaml", page, file)
		}
		require.Says(t, "docs/tasks/"+page, text, "-f examples/"+file+"\n")
	}
}

func textOf(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.Join(path...)))
	require.NoError(t, err)
	return string(text)
}
