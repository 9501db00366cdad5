package build

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
)

// writeModule makes a module without dependencies and returns its source folder.
func writeModule(t *testing.T, files map[string]string) string {
	t.Helper()
	source := t.TempDir()
	dir := filepath.Join(source, "components", "hello")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return source
}

func hello(t *testing.T, main string) (string, Component) {
	t.Helper()
	source := writeModule(t, map[string]string{"go.mod": "module example.com/hello\n\ngo 1.26.0\n", "main.go": main})
	return source, Component{Name: "hello", Package: ".", Binary: "hello", Links: []string{"world"}, LDFlags: "-s -w"}
}

const helloMain = "package main\n\nfunc main() { println(\"hello\") }\n"

func newBuilder(t *testing.T, source string, out *bytes.Buffer) *Builder {
	return &Builder{Source: source, Cache: t.TempDir(), Out: out, Starter: process.NewStarter()}
}

func TestTheKeyReportsApartAllThatDecides(t *testing.T) {
	source, component := hello(t, helloMain)
	dir := filepath.Join(source, "components", "hello")
	keyOf := func(c Component, platform string) string {
		t.Helper()
		k, err := key(c, dir, platform)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := keyOf(component, "go1 linux amd64")
	if again := keyOf(component, "go1 linux amd64"); again != first {
		t.Errorf("the key of the same is %s and then %s", first, again)
	}
	if keyOf(component, "go2 linux amd64") == first {
		t.Error("another Go version has the same key")
	}
	flags := component
	flags.LDFlags += " -X main.a=b"
	if keyOf(flags, "go1 linux amd64") == first {
		t.Error("other flags have the same key")
	}
	files := component
	files.Files = []ModuleFiles{{Module: "m", Paths: []string{"a"}, Into: "b"}}
	if keyOf(files, "go1 linux amd64") == first {
		t.Error("other files have the same key")
	}
	for _, name := range []string{"main.go", "go.mod", "go.sum"} {
		before := keyOf(component, "go1 linux amd64")
		if err := os.WriteFile(filepath.Join(dir, name), []byte("changed"), 0o644); err != nil {
			t.Fatal(err)
		}
		if keyOf(component, "go1 linux amd64") == before {
			t.Errorf("a changed %s has the same key", name)
		}
	}
}

func TestWhatIsNotBuiltIsListedAndNotBuilt(t *testing.T) {
	source, component := hello(t, helloMain)
	var out bytes.Buffer
	b := newBuilder(t, source, &out)
	missing, err := b.Missing(t.Context(), []Component{component})
	if err != nil || len(missing) != 1 {
		t.Errorf("before the build, missing are %v: %v", missing, err)
	}
	if entries, err := os.ReadDir(b.Cache); err != nil || len(entries) > 0 || out.Len() > 0 {
		t.Errorf("the cache has %v, and it says %q: %v", entries, &out, err)
	}
	if _, err := b.Ensure(t.Context(), []Component{component}); err != nil {
		t.Fatal(err)
	}
	if missing, err := b.Missing(t.Context(), []Component{component}); err != nil || len(missing) != 0 {
		t.Errorf("after the build, missing are %v: %v", missing, err)
	}
}

func TestAModuleOfAnotherVersionHasAKeyOfItsOwn(t *testing.T) {
	source, component := hello(t, helloMain)
	dir := filepath.Join(source, "components", "hello")
	older := component
	older.ModFile = "older.mod"
	keyOf := func(c Component) string {
		t.Helper()
		k, err := key(c, dir, "go1 linux amd64")
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	first := keyOf(component)
	write("older.mod", "module example.com/hello\n\ngo 1.25.0\n")
	write("older.sum", "a sum")
	if keyOf(component) != first {
		t.Error("the files of the other module change the key")
	}
	other := keyOf(older)
	if other == first {
		t.Error("both modules have the same key")
	}
	write("go.mod", "module example.com/hello\n\ngo 1.26.1\n")
	if keyOf(older) != other {
		t.Error("go.mod changes the key of the other module")
	}
	for _, name := range []string{"older.mod", "older.sum", "main.go"} {
		before := keyOf(older)
		write(name, "changed")
		if keyOf(older) == before {
			t.Errorf("a changed %s has the same key", name)
		}
	}
}

func TestAModuleOfAnotherVersionIsBuilt(t *testing.T) {
	source, component := hello(t, helloMain)
	dir := filepath.Join(source, "components", "hello")
	for name, content := range map[string]string{"go.mod": "not a module", "older.mod": "module example.com/hello\n\ngo 1.26.0\n", "older.sum": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	component.ModFile = "older.mod"
	if _, err := newBuilder(t, source, &bytes.Buffer{}).Ensure(context.Background(), []Component{component}); err != nil {
		t.Error(err)
	}
}

func TestAComponentWithoutModuleIsAnError(t *testing.T) {
	if _, err := key(Component{Name: "none"}, t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), "none: no go.mod") {
		t.Errorf("got %v", err)
	}
}

func TestCacheDir(t *testing.T) {
	for name, test := range map[string]struct {
		env  map[string]string
		want string
	}{
		"own variable first": {map[string]string{"KUBE_QUEUE_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a/localcluster"},
		"then XDG":           {map[string]string{"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/kube-queue/localcluster"},
		"then home":          {map[string]string{"HOME": "/c"}, "/c/.cache/kube-queue/localcluster"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := CacheDir(func(n string) string { return test.env[n] })
			if err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
	if _, err := CacheDir(func(string) string { return "" }); err == nil {
		t.Error("an empty environment gives a cache")
	}
}

func TestGOFLAGSOfTheCallerAreIgnored(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=nonsense")
	t.Setenv("GOWORK", "/nonexistent")
	source, component := hello(t, helloMain)
	var out bytes.Buffer
	builder := newBuilder(t, source, &out)
	dirs, err := builder.Ensure(context.Background(), []Component{component})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hello", "world"} {
		if _, err := os.Stat(filepath.Join(dirs[0], name)); err != nil {
			t.Error(err)
		}
	}

	out.Reset()
	again, err := builder.Ensure(context.Background(), []Component{component})
	if err != nil || again[0] != dirs[0] || out.Len() > 0 {
		t.Errorf("the second time it gives %v, %v and says %q", again, err, out.String())
	}
	checkOnlyResults(t, builder.Cache, 1)
}

func TestErrorOfABuildContainsTheCompilerOutput(t *testing.T) {
	source, component := hello(t, "package main\n\nfunc main() { undefinedFunction() }\n")
	builder := newBuilder(t, source, &bytes.Buffer{})
	_, err := builder.Ensure(context.Background(), []Component{component})
	if err == nil || !strings.Contains(err.Error(), "build hello") || !strings.Contains(err.Error(), "undefined: undefinedFunction") {
		t.Errorf("got %v", err)
	}
	checkOnlyResults(t, builder.Cache, 0)
}

func TestConcurrentBuildsWait(t *testing.T) {
	source, component := hello(t, helloMain)
	var out bytes.Buffer
	builder := newBuilder(t, source, &out)
	release, err := lock(context.Background(), builder.Cache, func() {})
	if err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("stopped")
	ctx, cancel := context.WithTimeoutCause(context.Background(), 300*time.Millisecond, stopped)
	defer cancel()
	if _, err := builder.Ensure(ctx, []Component{component}); !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(out.String(), "waiting for another build to finish ...") {
		t.Errorf("the output is %q", out.String())
	}
	release()
	if _, err := builder.Ensure(context.Background(), []Component{component}); err != nil {
		t.Error(err)
	}
}

// checkOnlyResults fails if the cache contains more than its lock and results.
func checkOnlyResults(t *testing.T, cache string, results int) {
	t.Helper()
	entries, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != results+1 {
		t.Errorf("the cache holds %v", entries)
	}
}
