package main

import (
	"fmt"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/registry"
)

// block puts a table between two marks that stand in the page.
func block(name, table string) edit {
	begin, end := "<!-- BEGIN generated: "+name+" -->\n", "<!-- END generated: "+name+" -->\n"
	return func(page string) (string, error) {
		head, rest, opened := strings.Cut(page, begin)
		_, tail, closed := strings.Cut(rest, end)
		if !opened || !closed {
			return "", fmt.Errorf("the marks %q and %q are not there, in this order", strings.TrimSpace(begin), strings.TrimSpace(end))
		}
		return head + begin + table + end + tail, nil
	}
}

// table of Markdown.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	b.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

// markTable says by what a job is marked, and what enables its kind.
func markTable(adapters []framework.Adapter) string {
	var rows [][]string
	for _, adapter := range adapters {
		kind := adapter.Kind()
		needs := kind.GroupVersion().String()
		if kind.Doc.Needs != "" {
			needs += "; " + kind.Doc.Needs
		}
		mark := "the same"
		if len(rows) == 0 {
			mark = "annotation `" + "scheduling.x-k8s.io/suspend: \"true\"`"
		}
		name := "`" + kind.Name + "`"
		if byDefault(kind) {
			name += "; on by default"
		}
		rows = append(rows, []string{kind.Kind + " (" + needs + ")", mark + bySuspend(kind), name})
	}
	return table([]string{"kind", "mark", "in `--enabled-extensions`"}, rows)
}

// nameTable lists the names.
func nameTable(adapters []framework.Adapter) string {
	var rows [][]string
	for _, adapter := range adapters {
		kind := adapter.Kind()
		what := kind.Kind + " of " + versions(kind)
		if len(kind.OtherNames) > 0 {
			what += "; either name enables the same, once"
		}
		rows = append(rows, []string{codes(append([]string{kind.Name}, kind.OtherNames...), ", "), what})
	}
	return table([]string{"name", "kind"}, rows)
}

// kindTable is what one has to know of a kind to have its jobs queued.
func kindTable(adapters []framework.Adapter) string {
	var rows [][]string
	for _, adapter := range adapters {
		kind := adapter.Kind()
		name := codes(append([]string{kind.Name}, kind.OtherNames...), " or ")
		if len(kind.OtherNames) > 0 {
			name += ", which are one"
		}
		if byDefault(kind) {
			name += " (on by default)"
		}
		rows = append(rows, []string{kind.Kind + " (" + versions(kind) + ")", name, "the annotation" + bySuspend(kind), kind.Doc.Shows})
	}
	return table([]string{"kind", "in `--enabled-extensions`", "is marked by", "its own status while it waits"}, rows)
}

// lifeTable is what a job is charged, and for how long.
func lifeTable(adapters []framework.Adapter) string {
	var rows [][]string
	for _, adapter := range adapters {
		kind := adapter.Kind()
		name := kind.Kind
		if several(adapters, kind) {
			name += " " + kind.Version
		}
		rows = append(rows, []string{name, kind.Doc.Counts, kind.Doc.Frees, kind.Doc.Stops})
	}
	return table([]string{"kind", "requests", "its quota is free when", "suspended by hand, it has stopped when"}, rows)
}

// several extensions have kinds of this name.
func several(adapters []framework.Adapter, kind framework.Kind) bool {
	found := 0
	for _, adapter := range adapters {
		if adapter.Kind().GroupKind() == kind.GroupKind() {
			found++
		}
	}
	return found > 1
}

func byDefault(kind framework.Kind) bool {
	return slices.Contains(strings.Split(registry.Default, ","), kind.Name)
}

// bySuspend is how else than by the annotation a job is marked.
func bySuspend(kind framework.Kind) string {
	switch field := dotted(kind.SuspendPath); {
	case !kind.MarkedBySuspend:
		return ""
	case kind.Doc.Mark != "":
		return "; or `" + field + ": true` and " + kind.Doc.Mark
	default:
		return ", or `" + field + ": true`"
	}
}

// versions of a kind, the best one first, with its group.
func versions(kind framework.Kind) string {
	return codes(append([]string{kind.GroupVersion().String()}, kind.OlderVersions...), ", ")
}

func codes(words []string, between string) string {
	return "`" + strings.Join(words, "`"+between+"`") + "`"
}
