package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/hack/internal/generator"
	samples "kube-queue.dev/kube-queue/test/acceptance/kinds"
	"kube-queue.dev/kube-queue/test/require"
)

const root = "../.."

// withWidget returns the files with one more kind, and what they say about it.
func withWidget(t *testing.T) (all []file, want map[string][]string) {
	t.Helper()
	adapters := append(registry.All(), aKind(func(k *framework.Kind) {
		k.OtherNames, k.MarkedBySuspend = []string{"gadget"}, true
		k.Operators = []string{"system:serviceaccount:widgets:widget-operator"}
		k.Doc = framework.Doc{Needs: "operator 7", Shows: "STATE `Waiting`", Counts: "all", Ready: "up", Frees: "over", Stops: "gone", Gang: "nothing"}
	}))
	widget := samples.Sample{
		Kind:  adapters[len(adapters)-1].Kind(),
		Total: corev1.ResourceList{"memory": resource.MustParse("1Gi"), "cpu": resource.MustParse("2")},
	}
	operators["example.com/v1"] = operators["jobset.x-k8s.io/v1alpha2"]
	t.Cleanup(func() { delete(operators, "example.com/v1") })
	all, err := files(root, adapters, []samples.Sample{widget})
	require.NoError(t, err)
	return all, map[string][]string{
		"charts/kube-queue/files/kinds.json":   {`"kind": "Widget"`},
		"charts/kube-queue/values.schema.json": {"\n          \"workflow\", \"widget\", \"gadget\", \"pod\"\n        ]"},
		"charts/kube-queue/values.yaml": {", widget (or gadget), pod. List ", " and widget only in annotationExtensions", "\nannotationExtensions: [tfjob, ", ", workflow, widget]\n",
			"\n  operators: []\n  # - {namespace: ", "\n  # - {namespace: widgets, serviceAccount: widget-operator, kinds: [widget]}\n\n"},
		"pkg/generated/kinds/kinds.go":     {`"Widget", "Workflow"`, `{Kind: "Widget", Key: "example.com/widget", IsUID: false},`},
		"README.md":                        {"| [JobSet](docs/tasks/run-jobset.md), [Widget](docs/tasks/run-widget.md) | JobSet "},
		"examples/README.md":               {"| [widget.yaml](widget.yaml) | [Widget](../docs/tasks/run-widget.md) `example.com/v1` | cpu 2, memory 1Gi |"},
		"docs/README.md":                   {"\n  or [Widget](tasks/run-widget.md)\n"},
		"docs/operations/configuration.md": {"| `widget`, `gadget` | Widget of `example.com/v1`; the names are equivalent |"},
		"docs/reference/kinds.md": {
			"| [Widget](../tasks/run-widget.md) (`example.com/v1`) | `widget` or `gadget` (equivalent) | the annotation, or `spec.policy.suspend: true` | STATE `Waiting` |",
			"| Widget | all | over | gone |", "| Widget | up |", "| Widget | nothing |", "| Widget | none, because its pods have none |"},
	}
}

func TestEachFileGetsANewKind(t *testing.T) {
	all, wanted := withWidget(t)
	for _, file := range all {
		text, err := os.ReadFile(filepath.Join(root, file.path))
		require.NoError(t, err)
		copied := filepath.Join(t.TempDir(), "file")
		if err := generator.Rewrite(copied, append([]generator.Edit{generator.Whole(string(text))}, file.edits...)...); err != nil {
			t.Fatalf("%s: %v", file.path, err)
		}
		got, err := os.ReadFile(copied)
		require.NoError(t, err)
		if wanted[file.path] == nil {
			t.Errorf("the test does not know what %s says of a kind", file.path)
		}
		require.Says(t, file.path, string(got), wanted[file.path]...)
		if err := generator.Rewrite(copied, file.edits...); err != nil {
			t.Fatalf("%s: %v", file.path, err)
		}
		if again, err := os.ReadFile(copied); err != nil || string(again) != string(got) {
			t.Errorf("%s: a second time it differs: %v", file.path, err)
		}
	}
}

func TestAPlaceThatIsGoneIsAnError(t *testing.T) {
	all, _ := withWidget(t)
	for _, file := range all {
		if ext := filepath.Ext(file.path); ext == ".go" || file.path == "charts/kube-queue/files/kinds.json" {
			continue // generated as a whole
		}
		for _, edit := range file.edits {
			if got, err := edit("something else\n"); err == nil {
				t.Errorf("%s becomes %q", file.path, got)
			}
		}
	}
}

func TestKindsWithEqualCellsShareARow(t *testing.T) {
	got := generator.Table([]string{"kind", "a", "b"}, merged([][]string{{"X", "1", "2"}, {"Y", "1", "3"}, {"Z", "1", "2"}}))
	if want := "| kind | a | b |\n|---|---|---|\n| X, Z | 1 | 2 |\n| Y | 1 | 3 |\n"; got != want {
		t.Errorf("the table is\n%s, want\n%s", got, want)
	}
}

// The table of versions is written by hand, because it gives the reasons too.
func TestThePageOfKindsListsTheTestedVersions(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/reference/kinds.md"))
	require.NoError(t, err)
	for _, o := range operators {
		version, err := o.tested(root)
		require.NoError(t, err)
		if row := "| " + o.name + " | " + version + " |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/reference/kinds.md has no row %q", row)
		}
	}
}

func TestAKindWithoutAnOperatorIsAnError(t *testing.T) {
	_, err := files(root, []framework.Adapter{aKind(func(*framework.Kind) {})}, nil)
	require.ErrorSays(t, err, "no operator of example.com/v1")
}
