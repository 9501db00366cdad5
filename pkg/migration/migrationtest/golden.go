// Package migrationtest compares conversions with golden files.
package migrationtest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/migration"
	"kube-queue.dev/kube-queue/test/require"
)

var update = flag.Bool("update", false, "write the golden files of conversions")

// Convert is a converter.
type Convert func([]migration.Document) (*migration.Result, error)

// T is a test, or a property test.
type T interface {
	Helper()
	Fatal(args ...any)
}

// Read reads the objects of a text.
func Read(t T, text string) []migration.Document {
	t.Helper()
	documents, err := migration.Read("input", strings.NewReader(text))
	require.NoError(t, err)
	return documents
}

// Text returns everything that a conversion produces.
func Text(t T, result *migration.Result) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, migration.WriteYAML(&out, result.Objects))
	for _, finding := range result.Findings {
		fmt.Fprintf(&out, "# finding: %s\n", finding)
	}
	for _, step := range result.Steps {
		fmt.Fprintf(&out, "# step: %s\n", step)
	}
	if result.Values != nil {
		values, err := yaml.Marshal(result.Values)
		require.NoError(t, err)
		for line := range strings.Lines(string(values)) {
			fmt.Fprintf(&out, "# value: %s", line)
		}
	}
	return out.String()
}

// Golden converts each file NAME.yaml of testdata, and compares the result with NAME.golden. With -update it writes
// that file.
func Golden(t *testing.T, convert Convert) {
	t.Helper()
	inputs, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(input)
			require.NoError(t, err)
			result, err := convert(Read(t, string(text)))
			require.NoError(t, err)
			got, file := Text(t, result), strings.TrimSuffix(input, ".yaml")+".golden"
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			if got != string(want) {
				t.Errorf("the result differs from %s; compare it, and write it with -update:\n%s", file, got)
			}
		})
	}
}

// Damage repeatedly converts each file of testdata, each time with one value replaced by a value of another type. The
// conversion can fail, but must not panic, and an error must be a *migration.InputError.
func Damage(t *testing.T, convert Convert) {
	t.Helper()
	inputs, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, input := range inputs {
		text, err := os.ReadFile(input)
		require.NoError(t, err)
		documents := Read(t, string(text))
		for i, d := range documents {
			damage(d.Object.Object, func(path string) {
				defer func() {
					if r := recover(); r != nil {
						t.Errorf("%s: %s with another %s: %v\n%s", input, d.Name(), path, r, debug.Stack())
					}
				}()
				var raw bytes.Buffer
				require.NoError(t, migration.WriteJSON(&raw, []*unstructured.Unstructured{d.Object}))
				read, err := migration.Read(input, &raw)
				if err == nil {
					_, err = convert(slices.Concat(documents[:i], read, documents[i+1:]))
				}
				if _, invalid := errors.AsType[*migration.InputError](err); err != nil && !invalid {
					t.Errorf("%s: %s with another %s: %v", input, d.Name(), path, err)
				}
			})
		}
	}
}

// damage replaces each value below the object in turn, and restores it.
func damage(value any, try func(path string)) {
	others := []any{nil, int64(-7), []any{"text", nil}, map[string]any{"a": map[string]any{}}}
	switch v := value.(type) {
	case map[string]any:
		for key, old := range v {
			for _, other := range others {
				v[key] = other
				try(key)
			}
			v[key] = old
			damage(old, try)
		}
	case []any:
		for i, old := range v {
			for _, other := range others {
				v[i] = other
				try(fmt.Sprintf("[%d]", i))
			}
			v[i] = old
			damage(old, try)
		}
	}
}
