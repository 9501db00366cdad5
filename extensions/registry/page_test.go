package registry

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// quoted are the files that docs/development/adding-a-kind.md quotes. Together with named, they are all the files that
// were written to add JAXJob.
var quoted = []string{
	"extensions/jaxjob/jaxjob.go",
	"extensions/jaxjob/jaxjob_test.go",
	"extensions/jaxjob/testdata/jaxjobs.yaml",
	"extensions/registry/registry.go",
	"test/audit/kinds.go",
	"test/localcluster/internal/cluster/trainingoperator.go",
	"examples/jaxjob.yaml",
}

// named are the other files that have a line for JAXJob.
var named = []string{
	"pkg/migration/jobs.go",
	"pkg/migration/kueue/configuration.go",
	"test/integration/admission/fence_test.go",
	"test/frameworks/ready_test.go",
	"test/e2e/random/kinds_test.go",
	"hack/testchanged/rules.go",
	"docs/tasks/run-jaxjob.md",
}

func TestThePageOnAddingAKindQuotesWhatIsThere(t *testing.T) {
	page := text(t, "docs/development/adding-a-kind.md")
	for _, name := range named {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("the page does not name %s", name)
		}
		if !strings.Contains(strings.ToLower(text(t, name)), "jaxjob") {
			t.Errorf("the page names %s, which does not mention JAXJob", name)
		}
	}
	var files []string
	for _, name := range quoted {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("the page does not name %s", name)
		}
		files = append(files, text(t, name))
	}
	blocks := regexp.MustCompile("(?s)```(?:go|yaml)\n(.*?)```").FindAllStringSubmatch(page, -1)
	found := map[int]bool{}
	for _, block := range blocks {
		for part := range strings.SplitSeq(block[1], "---\n") {
			if at := quotedFrom(files, part); at >= 0 {
				found[at] = true
			} else {
				t.Errorf("no file has this text:\n%s", part)
			}
		}
	}
	for at, name := range quoted {
		if !found[at] {
			t.Errorf("the page quotes nothing of %s", name)
		}
	}
}

func quotedFrom(files []string, part string) int {
	for at, file := range files {
		if strings.Contains(file, part) {
			return at
		}
	}
	return -1
}

func text(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
