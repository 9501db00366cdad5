// Kinds generates the files that depend on the kinds of extensions/registry: the data of the
// chart's policies and roles, the names in its values, the kinds of metrics' labels, and the
// tables and links of the documentation. update-codegen.sh runs it.
package main

import (
	"path/filepath"
	"strings"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/pod"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/hack/internal/generator"
	samples "kube-queue.dev/kube-queue/test/acceptance/kinds"
)

func main() {
	generator.Main("ROOT-OF-THE-REPOSITORY", func(root string) error {
		examples, err := samples.All()
		if err != nil {
			return err
		}
		all, err := files(root, registry.All(), examples)
		if err != nil {
			return err
		}
		for _, file := range all {
			if err := generator.Rewrite(filepath.Join(root, file.path), file.edits...); err != nil {
				return err
			}
		}
		return nil
	})
}

// file is a file of the repository, and what is generated in it.
type file struct {
	path  string
	edits []generator.Edit
}

func files(root string, adapters []framework.Adapter, examples []samples.Sample) ([]file, error) {
	data, err := dataOf(adapters)
	if err != nil {
		return nil, err
	}
	text, err := dataFile(data)
	if err != nil {
		return nil, err
	}
	code, err := goFile(append(data, podKinds(registry.Pods())...))
	if err != nil {
		return nil, err
	}
	var kinds []framework.Kind
	for _, adapter := range adapters {
		kinds = append(kinds, adapter.Kind())
	}
	tested, err := operatorTable(root, kinds)
	if err != nil {
		return nil, err
	}
	return []file{
		{"charts/kube-queue/files/kinds.json", []generator.Edit{generator.Whole(text)}},
		{"charts/kube-queue/values.schema.json", []generator.Edit{inside(schemaEnum, fold(append(allNames(kinds), pod.Name)))}},
		{"charts/kube-queue/values.yaml", []generator.Edit{inside(enabledComment, aboutEnabled(kinds)), inside(annotatedLine, strings.Join(registry.NamesOf(adapters), ", ")),
			inside(operatorsLines, operatorsExample(kinds))}},
		{"pkg/generated/kinds/kinds.go", []generator.Edit{generator.Whole(code)}},
		{"README.md", []generator.Edit{block("kinds", tested)}},
		{"examples/README.md", []generator.Edit{block("kinds", exampleTable(examples))}},
		{"docs/README.md", []generator.Edit{block("kinds", pageList(kinds))}},
		{"docs/operations/configuration.md", []generator.Edit{block("kinds", nameTable(kinds))}},
		{"docs/reference/kinds.md", []generator.Edit{block("kinds", kindTable(kinds)), block("kinds-life", lifeTable(kinds)),
			block("kinds-ready", readyTable(kinds)), block("kinds-places", placeTable(kinds)), block("kinds-elastic", elasticTable(kinds)),
			block("kinds-gangs", gangTable(kinds))}},
	}, nil
}

// block replaces a table of a page.
func block(name, table string) generator.Edit {
	return generator.Between("<!-- BEGIN generated: "+name+" -->\n", "<!-- END generated: "+name+" -->\n", table)
}
