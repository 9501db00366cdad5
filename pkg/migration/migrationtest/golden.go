// Package migrationtest compares conversions with golden files.
package migrationtest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/pkg/migration"
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
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

// Text is everything that a conversion gives.
func Text(t T, result *migration.Result) string {
	t.Helper()
	var out bytes.Buffer
	if err := migration.WriteYAML(&out, result.Objects); err != nil {
		t.Fatal(err)
	}
	for _, finding := range result.Findings {
		fmt.Fprintf(&out, "# finding: %s\n", finding)
	}
	for _, step := range result.Steps {
		fmt.Fprintf(&out, "# step: %s\n", step)
	}
	if result.Values != nil {
		values, err := yaml.Marshal(result.Values)
		if err != nil {
			t.Fatal(err)
		}
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
			if err != nil {
				t.Fatal(err)
			}
			result, err := convert(Read(t, string(text)))
			if err != nil {
				t.Fatal(err)
			}
			got, file := Text(t, result), strings.TrimSuffix(input, ".yaml")+".golden"
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the result differs from %s; compare it, and write it with -update:\n%s", file, got)
			}
		})
	}
}
