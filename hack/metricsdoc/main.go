// Metricsdoc generates the table of docs/reference/metrics.md from the definitions of
// pkg/metrics, between two markers in the file. update-codegen.sh runs it.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/pkg/metrics"
)

// The markers around the table.
const (
	begin = "<!-- The table is written by make generate. -->\n"
	end   = "<!-- End of the table. -->\n"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: metricsdoc FILE")
		os.Exit(2)
	}
	if err := rewrite(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "metricsdoc: %v\n", err)
		os.Exit(1)
	}
}

func rewrite(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	page, err := insert(string(text), table(metrics.Definitions()))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(page), 0o644)
}

// insert puts the table between the markers.
func insert(page, table string) (string, error) {
	head, rest, opened := strings.Cut(page, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !opened || !closed {
		return "", fmt.Errorf("must contain the markers %q and %q in this order", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return head + begin + "\n" + table + "\n" + end + tail, nil
}

func table(definitions []metrics.Definition) string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | program | meaning |\n|---|---|---|---|---|\n")
	for _, d := range definitions {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", d.Name, d.Type, codes(d.Labels), programs(d.Programs), d.Help)
	}
	return b.String()
}

func codes(names []string) string {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, "`"+name+"`")
	}
	return strings.Join(quoted, ", ")
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
