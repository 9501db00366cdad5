// Package pkg holds tests of how the packages below it import each other.
package pkg

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/require"
)

// room is a folder of the core with every package below it, but for those that a
// longer folder names. Such packages import each other, the pure part of the standard
// library, the rooms that are named, and what is listed of others: a new import is a
// decision. So nothing but the simulator knows a backend.
type room struct {
	folder string
	rooms  []string
	may    []string
}

// core is all that knows no client, no clock and no goroutine.
func core() []room {
	types := []string{"k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/api/resource",
		"k8s.io/apimachinery/pkg/api/validate/content", "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"}
	files := []string{"bufio", "bytes", "compress/gzip", "context", "encoding/csv", "encoding/json", "encoding/xml", "io",
		"os", "path/filepath", "regexp", "k8s.io/apimachinery/pkg/util/yaml", "sigs.k8s.io/yaml"}
	meta := append([]string{"regexp", "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1",
		"k8s.io/apimachinery/pkg/api/meta", "k8s.io/apimachinery/pkg/apis/meta/v1"}, types...)
	return []room{
		{"scheduler", []string{"backoff", "forecast", "preemption", "pods", "queue", "quota", "resources"}, nil},
		{"preemption", []string{"queue", "quota", "resources"}, nil},
		{"backoff", nil, nil},
		{"queue", []string{"quota", "resources"}, nil},
		{"pods", []string{"resources"}, nil},
		{"bounds", nil, append([]string{"k8s.io/apimachinery/pkg/util/validation"}, meta...)},
		{"resources", nil, []string{"k8s.io/apimachinery/pkg/api/resource"}},
		{"spelling", nil, nil},
		{"quota", []string{"resources"}, nil},
		{"quota/tree", []string{"quota", "resources", "spelling"}, types},
		{"quota/resourcequota", []string{"quota", "resources"}, types},
		{"quota/tree/manifest", []string{"quota/tree", "resources", "spelling"},
			append([]string{"encoding/json", "kube-queue.dev/kube-queue/apis/quota/v1beta1"}, types...)},
		{"requests", []string{"resources"}, append([]string{"k8s.io/api/node/v1", "k8s.io/api/resource/v1", "k8s.io/apimachinery/pkg/api/equality",
			"k8s.io/apimachinery/pkg/util/validation", "k8s.io/component-helpers/resource", "k8s.io/utils/ptr"}, types...)},
		{"lifecycle", nil, meta},
		{"arrival", nil, []string{"sync"}},
		{"visibility", []string{"scheduler", "simulator", "forecast", "queue", "quota", "resources", "spelling"}, append([]string{"sync", "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1",
			"kube-queue.dev/kube-queue/apis/visibility/v1alpha1", "k8s.io/apimachinery/pkg/apis/meta/v1"}, types...)},
		{"forecast", []string{"resources"}, nil},
		{"simulator", []string{"scheduler", "queue", "quota", "quota/tree", "quota/tree/manifest", "resources"}, append(files, types...)},
	}
}

// wellKnown is the package of the words that users read. It imports nothing.
const wellKnown = "kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"

// pure is what any package of the core may import of others.
func pure() []string {
	return []string{wellKnown, "cmp", "crypto/sha256", "encoding/binary", "errors", "fmt", "maps", "math", "math/big", "math/bits",
		"slices", "sort", "strconv", "strings", "time", "unicode/utf8", "unique"}
}

// clocks are the functions that read one, or wait.
func clocks() []string {
	return []string{"time.Now", "time.Since", "time.Until", "time.After", "time.AfterFunc", "time.Tick", "time.NewTimer",
		"time.NewTicker", "time.Sleep", "context.WithTimeout", "context.WithTimeoutCause", "context.WithDeadline",
		"context.WithDeadlineCause", "context.AfterFunc"}
}

const here = "kube-queue.dev/kube-queue/pkg"

// Design rule 5.
func TestTheCoreKnowsNoClientNoClockAndNoGoroutine(t *testing.T) {
	faults, err := inspect(".", core())
	require.NoError(t, err)
	for _, fault := range faults {
		t.Error(fault)
	}
}

// inspect reads all sources of the rooms, and returns what is wrong with them.
func inspect(root string, rooms []room) (faults []string, err error) {
	for _, r := range rooms {
		err := filepath.WalkDir(filepath.Join(root, r.folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(name))
			if err != nil {
				return err
			}
			isSource := !entry.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
			if !isSource || roomOf(rooms, filepath.ToSlash(folder)) != r.folder {
				return nil
			}
			found, err := inspectFile(name, func(imported string) bool {
				other := roomOf(rooms, strings.TrimPrefix(imported, here+"/"))
				return slices.Contains(pure(), imported) || slices.Contains(r.may, imported) ||
					other != "" && (other == r.folder || slices.Contains(r.rooms, other))
			})
			faults = append(faults, found...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return faults, nil
}

// roomOf is the folder of the room that a package is in; empty for none.
func roomOf(rooms []room, folder string) string {
	longest := ""
	for _, r := range rooms {
		if strings.HasPrefix(folder+"/", r.folder+"/") && len(r.folder) > len(longest) {
			longest = r.folder
		}
	}
	return longest
}

func inspectFile(name string, may func(imported string) bool) (faults []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		return nil, err
	}
	fault := func(format string, args ...any) { faults = append(faults, name+" "+fmt.Sprintf(format, args...)) }
	imports := map[string]string{}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if !may(imported) {
			fault("imports %s", imported)
		}
		called := path.Base(imported)
		if spec.Name != nil {
			called = spec.Name.Name
		}
		if called == "." {
			fault("imports %s without a name", imported)
		}
		imports[called] = imported
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			fault("starts a goroutine")
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok {
				if called := imports[pkg.Name] + "." + n.Sel.Name; slices.Contains(clocks(), called) {
					fault("uses a clock: %s", called)
				}
			}
		}
		return true
	})
	return faults, nil
}

// What the core imports of others must not bring a client either.
func TestNothingThatTheCoreImportsBringsAClient(t *testing.T) {
	var folders []string
	for _, r := range core() {
		folders = append(folders, "./"+r.folder+"/...")
	}
	imports := importsOf(t, folders...)
	for name := range imports {
		if roomOf(core(), strings.TrimPrefix(name, here+"/")) == "" {
			continue
		}
		if chain := clientChain(imports, name, map[string]bool{}); chain != nil {
			t.Errorf("a client is reached: %s", strings.Join(chain, " imports "))
		}
	}
	if shell := here + "/controller"; clientChain(importsOf(t, shell), shell, map[string]bool{}) == nil {
		t.Errorf("%s reaches no client, so none is found", shell)
	}
}

// Who uses the plugin needs no controller.
func TestThePluginKnowsOfTheControllerOnlyItsCodec(t *testing.T) {
	imports := importsOf(t, "./plugin/...")
	if _, is := imports[here+"/controller/codec"]; !is {
		t.Error("the plugin does not import the codec, so nothing is found")
	}
	for name := range imports {
		if strings.HasPrefix(name, here+"/controller") && name != here+"/controller/codec" {
			t.Errorf("the plugin imports %s", name)
		}
	}
}

// The programs in the cluster link nothing of the command line.
func TestTheProgramsInTheClusterDoNotLinkThePlugin(t *testing.T) {
	for name := range importsOf(t, "../cmd/job-extensions", "../cmd/kube-queue-controller", "../cmd/kube-queue-web") {
		if strings.HasPrefix(name, "k8s.io/cli-runtime/") || name == here+"/plugin/command" {
			t.Errorf("a program imports %s", name)
		}
	}
}

// importsOf returns what the packages of the folders need, each with its imports.
func importsOf(t *testing.T, folders ...string) map[string][]string {
	t.Helper()
	args := append([]string{"list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`}, folders...)
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	require.NoError(t, err)
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		imports[words[0]] = words[1:]
	}
	return imports
}

// clientChain is how the package comes to a client; nil where it comes to none.
func clientChain(imports map[string][]string, name string, seen map[string]bool) []string {
	if strings.HasPrefix(name, "k8s.io/client-go/") {
		return []string{name}
	}
	if seen[name] {
		return nil
	}
	seen[name] = true
	for _, imported := range imports[name] {
		if chain := clientChain(imports, imported, seen); chain != nil {
			return append([]string{name}, chain...)
		}
	}
	return nil
}

func TestWhatTheCoreMustNotKnowIsFoundInEachOfItsPackages(t *testing.T) {
	for _, c := range []struct{ name, file, text, want string }{
		{"a client", "scheduler/x.go", `import "k8s.io/client-go/rest"`, "imports k8s.io/client-go/rest"},
		{"a client in a package that is new", "quota/fresh/deep/x.go", `import "k8s.io/client-go/rest"`, "imports k8s.io/client-go/rest"},
		{"API types where they are not for", "queue/x.go", `import "k8s.io/api/core/v1"`, "imports k8s.io/api/core/v1"},
		{"API types where they are for", "quota/tree/x.go", `import "k8s.io/api/core/v1"`, ""},
		{"a package of the core", "scheduler/x.go", `import "` + here + `/quota"`, ""},
		{"a backend", "scheduler/x.go", `import "` + here + `/quota/tree"`, "imports " + here + "/quota/tree"},
		{"an outer room", "queue/x.go", `import "` + here + `/scheduler"`, "imports " + here + "/scheduler"},
		{"a package of its own room", "simulator/x.go", `import "` + here + `/simulator/trace"`, ""},
		{"the shell", "resources/x.go", `import "` + here + `/controller"`, "imports " + here + "/controller"},
		{"a name that only begins as a room's", "resources/x.go", `import "` + here + `/quotas"`, "imports " + here + "/quotas"},
		{"a clock", "quota/x.go", `import "time"; var now = time.Now`, "uses a clock: time.Now"},
		{"a clock by another name", "simulator/x.go", `import t "time"; func f() { t.Sleep(1) }`, "uses a clock: time.Sleep"},
		{"a clock by no name", "quota/x.go", `import . "time"`, "imports time without a name"},
		{"the clock's types", "quota/x.go", `import "time"; var zero time.Time`, ""},
		{"a goroutine", "quota/resourcequota/x.go", `func f() { go f() }`, "starts a goroutine"},
		{"a test", "queue/x_test.go", `import "k8s.io/client-go/rest"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for _, r := range core() {
				require.NoError(t, os.MkdirAll(filepath.Join(root, r.folder), 0o700))
			}
			name := filepath.Join(root, c.file)
			require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
			require.NoError(t, os.WriteFile(name, []byte("package x\n"+c.text+"\n"), 0o600))
			faults, err := inspect(root, core())
			require.NoError(t, err)
			var want []string
			if c.want != "" {
				want = []string{name + " " + c.want}
			}
			if !slices.Equal(faults, want) {
				t.Errorf("found %q, want %q", faults, want)
			}
		})
	}
}
