// Metricsdoc generates the table of docs/reference/metrics.md from the definitions of
// pkg/metrics, between two markers in the file. update-codegen.sh runs it.
package main

import (
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/hack/internal/generator"
	"kube-queue.dev/kube-queue/pkg/metrics"
)

func main() {
	generator.Main("FILE", func(file string) error {
		return generator.Rewrite(file, generator.Between("<!-- The table is written by make generate. -->\n", "<!-- End of the table. -->\n",
			"\n"+table(metrics.Definitions())+"\n"))
	})
}

func table(definitions []metrics.Definition) string {
	var rows [][]string
	for _, d := range definitions {
		rows = append(rows, []string{"`" + d.Name + "`", string(d.Type), generator.Codes(d.Labels, ", "), programs(d.Programs), d.Help})
	}
	return generator.Table([]string{"metric", "type", "labels", "program", "meaning"}, rows)
}

func programs(names []string) string {
	switch {
	case names == nil:
		return "both"
	case slices.Equal(names, []string{metrics.ControllerProgram}):
		return "controller"
	default:
		return strings.Join(names, ", ")
	}
}
