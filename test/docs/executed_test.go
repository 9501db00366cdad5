package docs

import (
	_ "embed"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"kube-queue.dev/kube-queue/test/require"
)

//go:embed executed.yaml
var executed []byte

func TestEachCommandOfThePagesIsExecuted(t *testing.T) {
	problems, err := Check(os.DirFS("../.."), executed)
	require.NoError(t, err)
	for _, problem := range problems {
		t.Error(problem)
	}
}

func TestACommandThatNothingExecutesIsReported(t *testing.T) {
	files := map[string]string{
		"Makefile":           "test-x: build ## Run x\n\tgo test ./x\nup-%: build\n",
		"x/x_test.go":        "package x\n\nfunc TestX(t *testing.T) {}\n",
		"README.md":          "Run `make test-x`.\n\n```sh\nhelm install \\\n  x   # a comment\n```\n",
		"CONTRIBUTING.md":    "`kubectl describe` shows it.\n",
		"SECURITY.md":        "",
		"examples/README.md": "",
		"docs/tasks/a.md":    "1. Do it:\n\n   ```console\n   $ kubectl get x\n   NAME\n   a\n   ```\n",
		"charts/c/README.md": "",
	}
	const list = `
- test: ./x TestX
  commands: [helm install x]
- make: test-x
  commands: [make test-x]
`
	for name, test := range map[string]struct {
		file, text string
		list       string
		problem    string
	}{
		"nothing new":                      {},
		"a command in a block":             {file: "SECURITY.md", text: "```sh\nhelm delete x\n```\n", problem: "SECURITY.md:2: helm delete x: nothing executes this command"},
		"a command after a prompt":         {file: "SECURITY.md", text: "```\n$ helm delete x\n```\n", problem: "SECURITY.md:2: helm delete x"},
		"a command in a table":             {file: "docs/b.md", text: "| | |\n|---|---|\n| x | `skopeo copy a b` |\n", problem: "docs/b.md:3: skopeo copy a b"},
		"a command in text on two lines":   {file: "docs/b.md", text: "Run `go test\n./y`.\n", problem: "docs/b.md:1: go test ./y"},
		"a second command of a block":      {file: "docs/b.md", text: "```sh\nhelm install x\nmake clean\n```\n", problem: "docs/b.md:3: make clean: nothing"},
		"a target that is not there":       {file: "docs/b.md", text: "`make test-y`\n", problem: "no such target"},
		"a package that is not there":      {file: "docs/b.md", text: "`go test ./y`\n", problem: "there is no package ./y"},
		"a test that is not there":         {file: "docs/b.md", text: "```sh\ngo test ./x -run 'TestX|TestY/a'\n```\n", problem: "no test matches TestY"},
		"kubectl where no cluster runs it": {file: "docs/b.md", text: "```sh\nkubectl get x\n```\n", problem: "docs/b.md:2: kubectl get x"},
		"kubectl where a cluster runs it":  {file: "docs/tasks/b.md", text: "```sh\nkubectl get x\n```\n"},
		"another test":                     {list: strings.ReplaceAll(list, "TestX", "TestY"), problem: "./x has no test TestY"},
		"another target":                   {list: strings.ReplaceAll(list, "make: test-x", "make: test-y"), problem: "no target test-y"},
		"a command that is gone":           {list: strings.ReplaceAll(list, "[helm install x]", "[helm install x, helm delete x]"), problem: `"helm delete x", which is on no page`},
		"a command that is listed twice":   {list: list + "- hand: now\n  commands: [helm install x]\n", problem: "twice"},
		"nothing that executes it":         {list: "- commands: [helm install x, make test-x]\n", problem: "set one of"},
	} {
		t.Run(name, func(t *testing.T) {
			repository := fstest.MapFS{}
			for file, text := range files {
				repository[file] = &fstest.MapFile{Data: []byte(text)}
			}
			if test.file != "" {
				repository[test.file] = &fstest.MapFile{Data: []byte(test.text)}
			}
			if test.list == "" {
				test.list = list
			}
			problems, err := Check(repository, []byte(test.list))
			require.NoError(t, err)
			found := strings.Join(problems, "\n")
			if test.problem == "" && found != "" || !strings.Contains(found, test.problem) {
				t.Errorf("the problems are %q, want %q", found, test.problem)
			}
		})
	}
}

func TestAPageIsReadCommandByCommand(t *testing.T) {
	page, err := ReadPage(fstest.MapFS{"a.md": &fstest.MapFile{Data: []byte("```sh\njq -r '\n  .a # b' > c\n\nls   # files\n```\n\n```console\n$ one\nout\n\nput\n$ two\n```\n```yaml\na: 1\n```\n")}}, "a.md")
	require.NoError(t, err)
	outputs := map[string]string{}
	for _, command := range page.Commands {
		outputs[command.Text] = command.Output
	}
	want := map[string]string{"jq -r '\n  .a # b' > c": "", "ls": "", "one": "out\n\nput", "two": ""}
	if !maps.Equal(outputs, want) {
		t.Errorf("the commands are %q, want %q", outputs, want)
	}
	if !slices.Equal(page.Manifests, []string{"a: 1\n"}) {
		t.Errorf("the manifests are %q", page.Manifests)
	}
	if _, err := ReadPage(fstest.MapFS{"a.md": &fstest.MapFile{Data: []byte("```sh\nls\n")}}, "a.md"); err == nil {
		t.Error("a block without an end is read")
	}
}
