// Kinds generates the files that depend on the kinds of extensions/registry: the data of the
// chart's policies and roles, the names in its values, the kinds of metrics' labels, and the
// tables and links of the documentation. update-codegen.sh runs it.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"kube-queue.dev/kube-queue/extensions/registry"
	samples "kube-queue.dev/kube-queue/test/acceptance/kinds"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: kinds ROOT-OF-THE-REPOSITORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "kinds: %v\n", err)
		os.Exit(1)
	}
}

// edit returns the new text of a file. The text of a missing file is empty.
type edit func(text string) (string, error)

func write(root string) error {
	adapters := registry.All()
	data, err := dataOf(adapters)
	if err != nil {
		return err
	}
	examples, err := samples.All()
	if err != nil {
		return err
	}
	names := namesOf(adapters)
	tested, err := operatorTable(root, adapters)
	if err != nil {
		return err
	}
	for _, file := range []struct {
		path  string
		edits []edit
	}{
		{"charts/kube-queue/files/kinds.json", []edit{dataFile(data)}},
		{"charts/kube-queue/values.schema.json", []edit{schemaEnum(registry.Names())}},
		{"charts/kube-queue/values.yaml", []edit{valuesComment(adapters), annotated(names), operatorsExample(adapters)}},
		{"charts/kube-queue/README.md", []edit{valuesRow(adapters)}},
		{"hack/deploy-values.yaml", []edit{enabled(names)}},
		{"pkg/generated/kinds/kinds.go", []edit{goFile(data)}},
		{"README.md", []edit{block("kinds", tested)}},
		{"examples/README.md", []edit{block("kinds", exampleTable(examples))}},
		{"docs/README.md", []edit{block("kinds", pageList(adapters))}},
		{"docs/operations/configuration.md", []edit{block("kinds", nameTable(adapters))}},
		{"docs/reference/kinds.md", []edit{block("kinds", kindTable(adapters)), block("kinds-life", lifeTable(adapters)),
			block("kinds-ready", readyTable(adapters)), block("kinds-places", placeTable(adapters)), block("kinds-elastic", elasticTable(adapters)),
			block("kinds-gangs", gangTable(adapters))}},
	} {
		if err := rewrite(filepath.Join(root, file.path), file.edits...); err != nil {
			return err
		}
	}
	return nil
}

func rewrite(path string, edits ...edit) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	page := string(text)
	for _, change := range edits {
		if page, err = change(page); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(page), 0o644)
}
