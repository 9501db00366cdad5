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
	samples "kube-queue.dev/kube-queue/test/acceptance/kinds"
)

func TestATableTakesTheOldOnesPlace(t *testing.T) {
	const begin, end = "<!-- BEGIN generated: kinds -->\n", "<!-- END generated: kinds -->\n"
	page := "# Kinds\n\n" + begin + "old\n" + end + "\nmore\n"
	got, err := block("kinds", "new\n")(page)
	if want := "# Kinds\n\n" + begin + "new\n" + end + "\nmore\n"; err != nil || got != want {
		t.Errorf("it becomes\n%s%v, want\n%s", got, err, want)
	}
	if _, err := block("kinds", "new\n")(end + begin); err == nil {
		t.Error("marks in the wrong order are taken for right")
	}
}

func TestEachFileGetsANewKind(t *testing.T) {
	adapters := append(registry.All(), aKind(func(k *framework.Kind) {
		k.OtherNames, k.MarkedBySuspend = []string{"gadget"}, true
		k.Operators = []string{"system:serviceaccount:widgets:widget-operator"}
		k.Doc = framework.Doc{Needs: "operator 7", Shows: "STATE `Waiting`", Counts: "all", Ready: "up", Frees: "over", Stops: "gone", Gang: "nothing"}
	}))
	data, err := dataOf(adapters)
	if err != nil {
		t.Fatal(err)
	}
	widget := samples.Sample{
		Kind:  adapters[len(adapters)-1].Kind(),
		Total: corev1.ResourceList{"memory": resource.MustParse("1Gi"), "cpu": resource.MustParse("2")},
	}
	operators["example.com/v1"] = operators["jobset.x-k8s.io/v1alpha2"]
	t.Cleanup(func() { delete(operators, "example.com/v1") })
	tested, err := operatorTable("../..", adapters)
	if err != nil {
		t.Fatal(err)
	}
	const mark = ", or `spec.policy.suspend: true`"
	tests := []struct {
		path   string
		change edit
		want   []string
	}{
		{"charts/kube-queue/files/kinds.json", dataFile(data), []string{`"kind": "Widget"`}},
		{"charts/kube-queue/values.schema.json", schemaEnum([]string{"widget", "gadget"}), []string{"\n          \"widget\", \"gadget\"\n        ]"}},
		{"charts/kube-queue/values.yaml", valuesComment(adapters), []string{", widget (or gadget). For ", " and widget, objects that are suspended"}},
		{"charts/kube-queue/values.yaml", operatorsExample(adapters), []string{"\n  operators: []\n  # - {namespace: ", "\n  # - {namespace: widgets, serviceAccount: widget-operator, kinds: [widget]}\n\n"}},
		{"charts/kube-queue/README.md", valuesRow(adapters), []string{", widget (or gadget). For "}},
		{"hack/deploy-values.yaml", enabled(namesOf(adapters)), []string{", workflow, widget]\n"}},
		{"pkg/generated/kinds/kinds.go", goFile(data), []string{`"Widget", "Workflow"`, `{Kind: "Widget", Key: "example.com/widget", IsUID: false},`}},
		{"README.md", block("kinds", tested), []string{"| [Widget](docs/tasks/run-widget.md) | JobSet "}},
		{"examples/README.md", block("kinds", exampleTable([]samples.Sample{widget})), []string{
			"| [widget.yaml](widget.yaml) | [Widget](../docs/tasks/run-widget.md) `example.com/v1` | cpu 2, memory 1Gi |"}},
		{"docs/README.md", block("kinds", pageList(adapters)), []string{"\n  or [Widget](tasks/run-widget.md)\n"}},
		{"docs/operations/configuration.md", block("kinds", nameTable(adapters)), []string{"| `widget`, `gadget` | Widget of `example.com/v1`; the names are equivalent |"}},
		{"docs/reference/kinds.md", block("kinds", kindTable(adapters)), []string{
			"| [Widget](../tasks/run-widget.md) (`example.com/v1`) | `widget` or `gadget` (equivalent) | the annotation" + mark + " | STATE `Waiting` |"}},
		{"docs/reference/kinds.md", block("kinds-life", lifeTable(adapters)), []string{"| Widget | all | over | gone |"}},
		{"docs/reference/kinds.md", block("kinds-ready", readyTable(adapters)), []string{"| Widget | up |"}},
		{"docs/reference/kinds.md", block("kinds-gangs", gangTable(adapters)), []string{"| Widget | nothing |"}},
		{"docs/reference/kinds.md", block("kinds-places", placeTable(adapters)), []string{"| Widget | none, because its pods have none |"}},
	}
	for _, test := range tests {
		text, err := os.ReadFile(filepath.Join("../..", test.path))
		if err != nil {
			t.Fatal(err)
		}
		got, err := test.change(string(text))
		if err != nil {
			t.Fatalf("%s: %v", test.path, err)
		}
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s has no %q:\n%s", test.path, want, got)
			}
		}
		again, err := test.change(got)
		if err != nil || again != got {
			t.Errorf("%s: a second time it differs: %v", test.path, err)
		}
	}
}

func TestKindsWithEqualCellsShareARow(t *testing.T) {
	got := table([]string{"kind", "a", "b"}, merged([][]string{{"X", "1", "2"}, {"Y", "1", "3"}, {"Z", "1", "2"}}))
	if want := "| kind | a | b |\n|---|---|---|\n| X, Z | 1 | 2 |\n| Y | 1 | 3 |\n"; got != want {
		t.Errorf("the table is\n%s, want\n%s", got, want)
	}
}

func TestAPlaceThatIsGoneIsAnError(t *testing.T) {
	for name, change := range map[string]edit{
		"schema": schemaEnum(nil), "comment": valuesComment(nil), "row": valuesRow(nil), "values": enabled(nil), "operators": operatorsExample(nil), "table": block("kinds", ""),
	} {
		if got, err := change("something else\n"); err == nil {
			t.Errorf("%s: it becomes %q", name, got)
		}
	}
}

// The table of versions is written by hand, because it gives the reasons too.
func TestThePageOfKindsListsTheTestedVersions(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/kinds.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range operators {
		version, err := o.tested("../..")
		if err != nil {
			t.Fatal(err)
		}
		if row := "| " + o.name + " | " + version + " |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/reference/kinds.md has no row %q", row)
		}
	}
}

func TestAKindWithoutAnOperatorIsAnError(t *testing.T) {
	if got, err := operatorTable("../..", []framework.Adapter{aKind(func(*framework.Kind) {})}); err == nil {
		t.Errorf("the table is\n%s", got)
	}
}
