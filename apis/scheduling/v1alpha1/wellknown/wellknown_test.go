package wellknown_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

const root = "../../../.."

// The folders are those of the programs and what they are made of. Tests and the chart
// may spell words out: they say what users see.
func TestWordsAreDefinedOnce(t *testing.T) {
	code := load(t, "apis", "pkg", "cmd", "extensions")
	looked := 0
	for _, p := range code.own {
		if strings.HasPrefix(p.ImportPath, module+"pkg/generated/") {
			continue
		}
		if strings.HasPrefix(p.ImportPath, module+"pkg/migration/") {
			continue // it reads keys of other queues, and its sentences name those and ours side by side
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			files = append(files, code.parse(t, filepath.Join(p.Dir, name), nil))
		}
		looked += len(files)
		for _, fault := range code.check(t, p.ImportPath, files) {
			t.Error(strings.TrimPrefix(fault, code.root))
		}
	}
	if looked < 200 {
		t.Errorf("only %d files were looked at", looked)
	}
	code.checkDefinitions(t)
}

func TestAWordThatTheAPIDoesNotDefineIsFound(t *testing.T) {
	code := load(t, "apis", "pkg/lifecycle")
	const head = `package planted
import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
)
var _, _, _, _ = meta.FindStatusCondition, metav1.Condition{}, v1alpha1.QueueUnit{}, wellknown.ReasonStopped
`
	for _, test := range []struct{ name, source, want string }{
		{"a reason of an own constant", `const Mine wellknown.Reason = "Mine"`, `"Mine" is a `},
		{"a reason that is a literal, though it is a known one", `var _ = v1alpha1.QueueUnitStatus{Reason: "QuotaExceeded"}`, `"QuotaExceeded" is a `},
		{"a converted literal", `var _ = wellknown.EventReason("Reported")`, `"Reported" is a `},
		{"a literal in a comparison", `func f(r wellknown.Reason) bool { return r == "Mine" }`, `"Mine" is a `},
		{"a literal in a switch", `func f(r wellknown.Reason) { switch r { case "Mine": } }`, `"Mine" is a `},
		{"a phase", `var _ = v1alpha1.QueueUnitPhase("Lost")`, `"Lost" is a `},
		{"the type of a condition", `var _ = metav1.Condition{Type: "Mine"}`, `"Mine" is a reason or condition type`},
		{"the reason of a condition", `func f(c *metav1.Condition) { c.Reason = "Mine" }`, `"Mine" is a reason or condition type`},
		{"a constant of one's own for it", "const mine = \"Mine\"\nfunc f(c metav1.Condition) bool { return c.Reason == mine }", `"Mine" is a reason or condition type`},
		{"a condition that is looked for", `func f(l []metav1.Condition) bool { return meta.IsStatusConditionTrue(l, "Mine") }`, `"Mine" is a reason or condition type`},
		{"a reason in a patch", `var _ = map[string]any{"reason": "Mine"}`, `"Mine" is a reason or condition type`},
		{"a key", `const mine = "kube-queue/mine"`, `names a key`},
		{"a key in a sentence", `const mine = "set scheduling.x-k8s.io/suspend to true"`, `names a key`},
		{"a prefix of keys", `var prefix = "provreq.kube-queue/"`, `names a key`},

		{"constants of the API", `var _ = metav1.Condition{Type: wellknown.ConditionEvicted, Reason: string(wellknown.ReasonStopped)}`, ""},
		{"one that becomes an event", `var _ = wellknown.EventReason(wellknown.ReasonStopped)`, ""},
		{"none at all", `func f(r wellknown.Reason) bool { return r == "" }`, ""},
		{"another project's word", `func f(c metav1.Condition) bool { return c.Reason == metav1.StatusSuccess }`, ""},
		{"a version of the group", `const version = "scheduling.x-k8s.io/v1alpha1"`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := code.parse(t, "planted.go", head+test.source)
			found := strings.Join(code.check(t, module+"planted", []*ast.File{file}), "\n")
			if test.want == "" && found != "" || !strings.Contains(found, test.want) {
				t.Errorf("reported is %q, not %q", found, test.want)
			}
			if n := strings.Count(found, "\n"); n > 0 {
				t.Errorf("it is reported %d times: %s", n+1, found)
			}
		})
	}
}

// code is what is looked at, and the compiler's account of what it imports.
type code struct {
	root    string
	files   *token.FileSet
	own     []listed
	imports types.Importer
}

type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

func load(t *testing.T, folders ...string) *code {
	t.Helper()
	for _, folder := range folders { // so that go test knows by what to look again
		err := filepath.WalkDir(filepath.Join(root, folder), func(_ string, _ fs.DirEntry, err error) error { return err })
		require.NoError(t, err)
	}
	absolute, err := filepath.Abs(root)
	require.NoError(t, err)
	c := &code{root: absolute + "/", files: token.NewFileSet()}
	arguments := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}
	for _, folder := range folders {
		arguments = append(arguments, "./"+folder+"/...")
	}
	list := exec.CommandContext(t.Context(), "go", arguments...)
	var said bytes.Buffer
	list.Dir, list.Stderr = root, &said
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, &said)
	}
	exports := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if strings.HasPrefix(p.ImportPath, module) {
			c.own = append(c.own, p)
		}
	}
	c.imports = importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return c
}

func (c *code) parse(t *testing.T, name string, source any) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(c.files, name, source, parser.SkipObjectResolution)
	require.NoError(t, err)
	return file
}

// check reports the words of a package that the API does not define.
func (c *code) check(t *testing.T, path string, files []*ast.File) []string {
	t.Helper()
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: c.imports}
	pkg, err := config.Check(path, c.files, files, info)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	checker := checker{files: c.files, info: info, pkg: pkg}
	for _, file := range files {
		checker.check(file)
	}
	return checker.found
}

// checkDefinitions: no two constants of one type are the same word.
func (c *code) checkDefinitions(t *testing.T) {
	t.Helper()
	pkg, err := c.imports.Import(words)
	require.NoError(t, err)
	names := map[string]string{}
	for _, name := range pkg.Scope().Names() {
		defined, is := pkg.Scope().Lookup(name).(*types.Const)
		if !is {
			continue
		}
		word := defined.Type().String() + " " + defined.Val().String()
		if first, twice := names[word]; twice {
			t.Errorf("%s and %s are the same: %s", first, name, word)
		}
		names[word] = name
	}
	if imports := pkg.Imports(); len(imports) > 0 {
		t.Errorf("the package imports %v", imports)
	}
}
