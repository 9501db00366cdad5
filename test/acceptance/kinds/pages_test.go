package kinds

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/examples"
)

// A user who reads a page of docs/tasks sees the very file that the page applies.
func TestEachPageShowsItsExample(t *testing.T) {
	pages := map[string]string{examples.QuotaTree: "give-out-quota.md"}
	for _, sample := range all(t) {
		pages[File(sample.Kind)] = "run-" + strings.ToLower(sample.Kind.Kind) + ".md"
	}
	for file, page := range pages {
		text := textOf(t, "docs", "tasks", page)
		manifest, err := examples.Files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, "\n```yaml\n"+string(manifest)+"```\n") {
			t.Errorf("docs/tasks/%s does not show examples/%s as it is: copy the file into a block ```yaml", page, file)
		}
		if !strings.Contains(text, "-f examples/"+file+"\n") {
			t.Errorf("docs/tasks/%s does not apply examples/%s", page, file)
		}
	}
}

func TestTheListOfExamplesHasTheirRequests(t *testing.T) {
	rows := strings.Split(textOf(t, "examples", "README.md"), "\n")
	for _, sample := range all(t) {
		var amounts []string
		for name, amount := range sample.Total {
			amounts = append(amounts, fmt.Sprintf("%s %s", name, amount.String()))
		}
		slices.Sort(amounts)
		want := strings.Join(amounts, ", ")
		if !slices.ContainsFunc(rows, func(row string) bool {
			return strings.HasPrefix(row, "| ["+File(sample.Kind)+"]") && strings.Contains(row, "| "+want+" ") &&
				strings.Contains(row, "docs/tasks/run-"+strings.ToLower(sample.Kind.Kind)+".md")
		}) {
			t.Errorf("examples/README.md has no row of %s that requests %s and links its page", File(sample.Kind), want)
		}
	}
}

func textOf(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.Join(path...)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
