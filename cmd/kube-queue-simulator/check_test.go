package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

const treeHead = "apiVersion: scheduling.sigs.k8s.io/v1beta1\nkind: ElasticQuotaTree\nmetadata: {name: t, namespace: kube-system}\n"

const (
	validTree   = treeHead + "spec: {root: {name: root, max: {cpu: 4}, children: [{name: a, namespaces: [a], max: {cpu: 4}}]}}\n"
	invalidTree = treeHead + "spec: {root: {name: root, mx: {cpu: 4}, children: [{name: a, min: {cpu: 2}, max: {cpu: 1}}]}}\n"
)

func TestCheckingTrees(t *testing.T) {
	const invalid = "kube-system/t is invalid\n" +
		"  error: root: unknown field \"mx\"; did you mean \"max\"?\n" +
		"  error: root/a: min cpu 2 is above max 1; lower the min or raise the max\n"
	for _, c := range []struct {
		name, text string
		code       int
		want       string
	}{
		{"a valid tree", validTree, exitClean, "FILE: kube-system/t is valid\n"},
		{"an invalid tree", invalidTree, exitError, "FILE: " + invalid + "1 of 1 trees invalid\n"},
		{"a tree with warnings", strings.Replace(validTree, "max: {cpu: 4}, ch", "max: {cpu: 2, nvidia.com/gpus: 3}, ch", 1), exitClean, "FILE: kube-system/t is valid\n" +
			"  warning: root: max: no known resource is called \"nvidia.com/gpus\", so the entry probably has no effect; did you mean \"nvidia.com/gpu\"?\n" +
			"  warning: root/a: max cpu 4 is above max 2 of root, so it can never be reached; lower it\n"},
		{"all documents", "# nothing\n---\n" + validTree + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n" + invalidTree, exitError,
			"FILE: kube-system/t is valid\nFILE: " + invalid + "  warning: FILE has 2 trees, and a cluster uses only the oldest tree in namespace kube-system\n1 of 2 trees invalid\n"},
		{"no YAML", "a: b: c\n---\n" + validTree, exitError, "FILE: error: document 1: invalid YAML: yaml: mapping values are not allowed in this context\n" +
			"FILE: kube-system/t is valid\n1 of the documents cannot be read\n"},
		{"a field that is written twice", treeHead + "spec:\n  root:\n    name: root\n    max: {cpu: 1}\n    max: {cpu: 2}\n", exitError,
			"FILE: error: document 1: invalid YAML: yaml: unmarshal errors:\n  line 8: key \"max\" already set in map\n1 of the documents cannot be read\n"},
		{"no object", "- 1\n", exitError, "FILE: error: document 1: not a Kubernetes object: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := file(t, "tree.yaml", c.text)
			for _, given := range []struct{ arg, stdin, name string }{{name, "", name}, {"-", c.text, "standard input"}, {filepath.Dir(name), "", name}} {
				stdout, stderr := runWith(t, given.stdin, c.code, "check", given.arg)
				if !strings.HasPrefix(stdout, strings.ReplaceAll(c.want, "FILE", given.name)) || stderr != "" {
					t.Errorf("%s: it prints\n%swant\n%sstderr %q", given.arg, stdout, strings.ReplaceAll(c.want, "FILE", given.name), stderr)
				}
			}
		})
	}
}

func TestCheckingSeveralFilesAndFolders(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"a/one.yml": validTree, "a/b/two.json": `{"kind":"List","apiVersion":"v1","items":[]}`, "three.yaml": invalidTree, "a/four.txt": "odd: : :"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	stdout, _ := run(t, exitError, "check", folder, "../../examples/quota-tree.yaml")
	says(t, "stdout", stdout, "a/one.yml: kube-system/t is valid", "three.yaml: kube-system/t is invalid", "quota-tree.yaml: kube-system/elasticquotatree is valid", "1 of 3 trees invalid")
}

func TestNothingToCheckIsAWrongCommandLine(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no file", nil, "no file is given; name the files with the trees to check, or - for the standard input"},
		{"a file that does not exist", []string{"no/such.yaml"}, "no/such.yaml"},
		{"a folder that is empty", []string{t.TempDir()}, "no ElasticQuotaTree (scheduling.sigs.k8s.io/v1beta1) was found"},
		{"an empty standard input", []string{"-"}, "no ElasticQuotaTree"},
		{"an unknown flag", []string{"--tree=x"}, "kube-queue-simulator check: unknown flag: --tree See 'kube-queue-simulator check --help' for usage."},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, stderr := run(t, exitUsage, append([]string{"check"}, c.args...)...)
			says(t, "stderr", stderr, c.want)
		})
	}
}

func TestThePageShowsWhatTheProgramPrints(t *testing.T) {
	tree, err := os.ReadFile("../../examples/quota-tree.yaml")
	require.NoError(t, err)
	page, err := os.ReadFile("../../docs/tasks/give-out-quota.md")
	require.NoError(t, err)
	name := file(t, "tree.yaml", strings.NewReplacer("name: everybody-else", "name: research", `max: {cpu: "2"}`, `mx: {cpu: "2"}`).Replace(string(tree)))
	stdout, _ := run(t, exitError, "check", name)
	if shown := strings.ReplaceAll(stdout, filepath.Dir(name)+"/", ""); !strings.Contains(string(page), "```\n"+shown+"```\n") {
		t.Errorf("the program prints\n%s", shown)
	}
}
