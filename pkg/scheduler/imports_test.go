package scheduler_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Design rule 5. What may be imported is listed, so that a new import is a
// decision.
func TestTheCoreKnowsNoClientNoClockAndNoGoroutine(t *testing.T) {
	standard := []string{"cmp", "errors", "fmt", "maps", "math", "math/bits", "slices", "strconv", "strings", "time"}
	const words = "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown" // which imports nothing
	allowed := map[string][]string{
		".":        append(standard, words, "kube-queue.dev/kube-queue/pkg/queue", "kube-queue.dev/kube-queue/pkg/quota", "kube-queue.dev/kube-queue/pkg/resources"),
		"../queue": append(standard, "kube-queue.dev/kube-queue/pkg/quota", "kube-queue.dev/kube-queue/pkg/resources"),
	}
	for folder, imports := range allowed {
		known := map[string]bool{}
		for _, path := range imports {
			known[path] = true
		}
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if name := file.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
				checkFile(t, filepath.Join(folder, name), known)
			}
		}
	}
}

func checkFile(t *testing.T, name string, known map[string]bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		if path, _ := strconv.Unquote(spec.Path.Value); !known[path] {
			t.Errorf("%s imports %s", name, path)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			t.Errorf("%s starts a goroutine", name)
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "time" && clockReaders[n.Sel.Name] {
				t.Errorf("%s reads the clock: time.%s", name, n.Sel.Name)
			}
		}
		return true
	})
}

var clockReaders = map[string]bool{"Now": true, "Since": true, "Until": true, "After": true, "AfterFunc": true,
	"Tick": true, "NewTimer": true, "NewTicker": true, "Sleep": true}
