package registry

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

const own = "kube-queue.dev/kube-queue/"

// impure are the packages below extensions that may have a client, a clock and
// goroutines: the shell, and the tests of adapters.
var impure = []string{"framework/reconciler", "framework/adaptertest", "provisioning/controller", "hold/admission"}

// Other allowed imports are listed, so that a new import is a decision. Packages of API
// types are always allowed: see isTypes.
var (
	standard = []string{"cmp", "crypto/sha256", "embed", "encoding/hex", "encoding/json", "errors", "fmt", "maps", "math", "regexp",
		"slices", "strconv", "strings", "time"}
	libraries = []string{
		"k8s.io/apimachinery/pkg/api/equality", "k8s.io/apimachinery/pkg/api/meta", "k8s.io/apimachinery/pkg/api/resource",
		"k8s.io/apimachinery/pkg/runtime", "k8s.io/apimachinery/pkg/runtime/schema", "k8s.io/apimachinery/pkg/types",
		"k8s.io/apimachinery/pkg/util/validation", "k8s.io/apimachinery/pkg/util/version", "k8s.io/component-helpers/resource", "k8s.io/utils/ptr",
		"sigs.k8s.io/json", "sigs.k8s.io/yaml",
		own + "pkg/bounds", own + "pkg/lifecycle", own + "pkg/requests", own + "pkg/resources", own + "pkg/lenient",
		own + "pkg/spelling", own + "pkg/generated/kinds",
	}
	// typesOnly are the only names that may be used from packages that also have a client.
	typesOnly = map[string][]string{own + "pkg/lenient": {"Kind", "Object", "Unreadable"}}
	// clocks are names that may not be used, because they read the time or wait.
	clocks = map[string][]string{
		"time":                                 {"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Sleep"},
		"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now", "NowMicro"},
	}
)

func TestAdaptersAndDecisionsKnowNoClientNoClockAndNoGoroutine(t *testing.T) {
	looked := map[string]bool{}
	err := filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		folder, _ := filepath.Rel("..", name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || slices.Contains(impure, filepath.ToSlash(folder))):
			return fs.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			looked[filepath.ToSlash(filepath.Dir(folder))] = true
			for _, fault := range faults(t, name, nil) {
				t.Error(fault)
			}
		}
		return nil
	})
	require.NoError(t, err)
	for _, folder := range []string{"framework", "framework/decision", "job", "provisioning", "sparkapplication/spark"} {
		if !looked[folder] {
			t.Errorf("extensions/%s was not looked at", folder)
		}
	}
}

func TestAClientAClockAndAGoroutineAreReported(t *testing.T) {
	for _, test := range []struct{ source, want string }{
		{`import "k8s.io/client-go/tools/cache"`, "imports k8s.io/client-go/tools/cache"},
		{`import "k8s.io/client-go/informers/core/v1"`, "imports k8s.io/client-go/informers/core/v1"},
		{`import "sigs.k8s.io/jobset/client-go/clientset/versioned"`, "imports sigs.k8s.io/jobset/client-go/clientset/versioned"},
		{`import "net/http"`, "imports net/http"},
		{`import "context"`, "imports context"},
		{`import "kube-queue.dev/kube-queue/pkg/clientset"`, "imports kube-queue.dev/kube-queue/pkg/clientset"},
		{`import "kube-queue.dev/kube-queue/extensions/framework/reconciler"`, "imports kube-queue.dev/kube-queue/extensions/framework/reconciler"},
		{"import \"kube-queue.dev/kube-queue/pkg/lenient\"\nvar x lenient.Client", "names lenient.Client"},
		{"import \"time\"\nvar x = time.Now()", "names time.Now"},
		{"import m \"k8s.io/apimachinery/pkg/apis/meta/v1\"\nvar x = m.Now()", "names m.Now"},
		{"func f() { go f() }", "starts a goroutine"},
		{"import \"sigs.k8s.io/jobset/api/jobset/v1alpha2\"\nimport \"time\"\nvar x v1alpha2.JobSet\nvar y time.Time", ""},
	} {
		want := test.want
		if want != "" {
			want = "x.go " + want
		}
		if got := strings.Join(faults(t, "x.go", "package x\n"+test.source), "; "); got != want {
			t.Errorf("%s: reported is %q, not %q", test.source, got, want)
		}
	}
}

// faults returns what is impure in a file; source is its text if it is not on disk.
func faults(t *testing.T, name string, source any) (found []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
	require.NoError(t, err)
	names := map[string]string{}
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if !mayImport(imported) {
			found = append(found, fmt.Sprintf("%s imports %s", name, imported))
		}
		local := path.Base(imported)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		names[local] = imported
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, name+" starts a goroutine")
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && !mayName(names[pkg.Name], n.Sel.Name) {
				found = append(found, fmt.Sprintf("%s names %s.%s", name, pkg.Name, n.Sel.Name))
			}
		}
		return true
	})
	return found
}

func mayImport(imported string) bool {
	if rest, below := strings.CutPrefix(imported, own+"extensions/"); below {
		return !slices.Contains(impure, rest)
	}
	return slices.Contains(standard, imported) || slices.Contains(libraries, imported) || isTypes(imported)
}

// isTypes reports whether the package contains API types: it is below a folder "api" or
// "apis", and is not a client.
func isTypes(imported string) bool {
	folders := strings.Split(imported, "/")
	return slices.ContainsFunc(folders, func(f string) bool { return f == "api" || f == "apis" }) &&
		!slices.ContainsFunc(folders, func(f string) bool { return strings.Contains(f, "client") }) ||
		imported == "k8s.io/apimachinery/pkg/apis/meta/v1"
}

func mayName(imported, name string) bool {
	if only, limited := typesOnly[imported]; limited {
		return slices.Contains(only, name)
	}
	return !slices.Contains(clocks[imported], name)
}
