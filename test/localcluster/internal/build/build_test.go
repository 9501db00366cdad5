package build

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/localcluster/internal/process"
	"kube-queue.dev/kube-queue/test/require"
)

// write writes a file of the module of the component.
func write(t *testing.T, source, name, content string) {
	t.Helper()
	path := filepath.Join(source, "components", "hello", name)
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)))
}

// hello makes a module without dependencies and returns its source folder.
func hello(t *testing.T) (string, Component) {
	t.Helper()
	source := t.TempDir()
	write(t, source, "go.mod", "module example.com/hello\n\ngo 1.26.0\n")
	write(t, source, "main.go", "package main\n\nfunc main() { println(\"hello\") }\n")
	return source, Component{Name: "hello", Package: ".", Binary: "hello", Links: []string{"world"}, LDFlags: "-s -w"}
}

func newBuilder(t *testing.T, source string, out *bytes.Buffer) *Builder {
	return &Builder{Source: source, Cache: t.TempDir(), Out: out, Starter: process.NewStarter()}
}

// keyOf returns the key of a component on a platform.
func keyOf(t *testing.T, source string, c Component, platform string) string {
	t.Helper()
	k, err := key(c, filepath.Join(source, "components", "hello"), platform)
	require.NoError(t, err)
	return k
}

func TestTheKeyReportsApartAllThatDecides(t *testing.T) {
	source, component := hello(t)
	older := component
	older.ModFile = "older.mod"
	write(t, source, "older.mod", "module example.com/hello\n\ngo 1.25.0\n")
	flags, files := component, component
	flags.LDFlags += " -X main.a=b"
	files.Files = []ModuleFiles{{Module: "m", Paths: []string{"a"}, Into: "b"}}
	seen := map[string]string{}
	for name, k := range map[string]string{
		"the component":      keyOf(t, source, component, "go1 linux amd64"),
		"another Go version": keyOf(t, source, component, "go2 linux amd64"),
		"other flags":        keyOf(t, source, flags, "go1 linux amd64"),
		"other files":        keyOf(t, source, files, "go1 linux amd64"),
		"another version":    keyOf(t, source, older, "go1 linux amd64"),
	} {
		if seen[k] != "" {
			t.Errorf("%s and %s have the same key", seen[k], name)
		}
		seen[k] = name
	}
	for _, test := range []struct {
		file                string
		component, olderToo bool
	}{{"main.go", true, true}, {"go.mod", true, false}, {"go.sum", true, false}, {"older.mod", false, true}, {"older.sum", false, true}} {
		before, olderBefore := keyOf(t, source, component, ""), keyOf(t, source, older, "")
		write(t, source, test.file, "changed")
		if changed := keyOf(t, source, component, "") != before; changed != test.component {
			t.Errorf("a changed %s changes the key: %v", test.file, changed)
		}
		if changed := keyOf(t, source, older, "") != olderBefore; changed != test.olderToo {
			t.Errorf("a changed %s changes the key of the other version: %v", test.file, changed)
		}
	}
}

func TestGOFLAGSOfTheCallerAreIgnored(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=nonsense")
	t.Setenv("GOWORK", "/nonexistent")
	source, component := hello(t)
	var out bytes.Buffer
	builder := newBuilder(t, source, &out)
	dirs, err := builder.Ensure(context.Background(), []Component{component})
	require.NoError(t, err)
	for _, name := range []string{"hello", "world"} {
		_, err = os.Stat(filepath.Join(dirs[0], name))
		require.NoError(t, err)
	}

	out.Reset()
	again, err := builder.Ensure(context.Background(), []Component{component})
	if err != nil || again[0] != dirs[0] || out.Len() > 0 {
		t.Errorf("the second time it gives %v, %v and says %q", again, err, out.String())
	}
	checkOnlyResults(t, builder.Cache, 1)
}

func TestErrorOfABuildContainsTheCompilerOutput(t *testing.T) {
	source, component := hello(t)
	write(t, source, "broken/main.go", "package main\n\nfunc main() { undefinedFunction() }\n")
	broken := component
	broken.Package = "./broken"
	builder := newBuilder(t, source, &bytes.Buffer{})
	_, err := builder.Ensure(context.Background(), []Component{component, broken})
	require.ErrorSays(t, err, "build hello", "undefined: undefinedFunction")
	// Earlier results are kept.
	checkOnlyResults(t, builder.Cache, 1)
}

func TestConcurrentBuildsWait(t *testing.T) {
	source, component := hello(t)
	var out bytes.Buffer
	builder := newBuilder(t, source, &out)
	release, err := lock(context.Background(), builder.Cache, func() {})
	require.NoError(t, err)
	stopped := errors.New("stopped")
	ctx, cancel := context.WithTimeoutCause(context.Background(), 300*time.Millisecond, stopped)
	defer cancel()
	if _, err := builder.Ensure(ctx, []Component{component}); !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
	require.Says(t, "the output", out.String(), "waiting for another build to finish ...")
	release()
	_, err = builder.Ensure(context.Background(), []Component{component})
	require.NoError(t, err)
}

// checkOnlyResults fails if the cache contains more than its lock and results.
func checkOnlyResults(t *testing.T, cache string, results int) {
	t.Helper()
	entries, err := os.ReadDir(cache)
	require.NoError(t, err)
	if len(entries) != results+1 {
		t.Errorf("the cache holds %v", entries)
	}
}
