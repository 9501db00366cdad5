package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/registry"
	samples "kube-queue.dev/kube-queue/test/acceptance/kinds"
)

// block replaces the table between two marks of the page.
func block(name, table string) edit {
	begin, end := "<!-- BEGIN generated: "+name+" -->\n", "<!-- END generated: "+name+" -->\n"
	return func(page string) (string, error) {
		head, rest, opened := strings.Cut(page, begin)
		_, tail, closed := strings.Cut(rest, end)
		if !opened || !closed {
			return "", fmt.Errorf("the marks %q and %q are missing or not in this order", strings.TrimSpace(begin), strings.TrimSpace(end))
		}
		return head + begin + table + end + tail, nil
	}
}

// table returns a Markdown table.
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

// merged joins the names of kinds with equal cells in one row, at the place of the first.
func merged(rows [][]string) [][]string {
	var all [][]string
	for _, row := range rows {
		at := slices.IndexFunc(all, func(other []string) bool { return slices.Equal(other[1:], row[1:]) })
		if at < 0 {
			all = append(all, slices.Clone(row))
			continue
		}
		all[at][0] += ", " + row[0]
	}
	return all
}

// nameTable lists the names.
func nameTable(adapters []framework.Adapter) string {
	var rows [][]string
	for _, adapter := range adapters {
		kind := adapter.Kind()
		what := kind.Kind + " of " + versions(kind)
		if len(kind.OtherNames) > 0 {
			what += "; the names are equivalent"
		}
		rows = append(rows, []string{codes(append([]string{kind.Name}, kind.OtherNames...), ", "), what})
	}
	return table([]string{"name", "kind"}, rows)
}

// kindTable lists what users need to know to queue jobs of each kind.
func kindTable(adapters []framework.Adapter) string {
	var rows [][]string
	for _, adapter := range adapters {
		kind := adapter.Kind()
		name := codes(append([]string{kind.Name}, kind.OtherNames...), " or ")
		if len(kind.OtherNames) > 0 {
			name += " (equivalent)"
		}
		if byDefault(kind) {
			name += " (on by default)"
		}
		rows = append(rows, []string{pageLink("../tasks/", kind) + " (" + versions(kind) + ")", name, "the annotation" + bySuspend(kind), kind.Doc.Shows})
	}
	return table([]string{"kind", "in `--enabled-extensions`", "mark", "status while it waits"}, rows)
}

// lifeTable lists what is charged for a job, and for how long.
func lifeTable(adapters []framework.Adapter) string {
	var rows [][]string
	for _, adapter := range adapters {
		kind := adapter.Kind()
		rows = append(rows, []string{nameOf(adapters, kind), kind.Doc.Counts, kind.Doc.Frees, kind.Doc.Stops})
	}
	return table([]string{"kind", "charged", "the quota is free after", "signs that a job suspended by hand has stopped"}, merged(rows))
}

// placeTable lists where a release adds annotations to the pods of jobs.
func placeTable(adapters []framework.Adapter) string {
	var rows [][]string
	for _, adapter := range adapters {
		kind := adapter.Kind()
		name := nameOf(adapters, kind)
		if len(kind.Places) == 0 {
			rows = append(rows, []string{name, "none, because " + kind.NoPlaces})
		}
		for _, place := range kind.Places {
			podSets := "all others"
			if len(kind.Places) == 1 {
				podSets = "all"
			}
			if place.PodSet != "" {
				podSets = "`" + place.PodSet + "`"
			}
			where := placeText(place)
			if place.Unless != nil {
				where += "; not with `" + dotted(place.Unless) + "`, because " + place.Why
			}
			rows = append(rows, []string{name, podSets + ": " + where})
		}
	}
	return table([]string{"kind", "pod sets, and where they get annotations"}, rows)
}

// elasticTable lists the kinds of which jobs may start with fewer pods.
func elasticTable(adapters []framework.Adapter) string {
	var rows [][]string
	for _, adapter := range adapters {
		kind := adapter.Kind()
		if kind.Elastic == nil {
			continue
		}
		needs := cmp.Or(kind.Elastic.Needs, "nothing")
		rows = append(rows, []string{nameOf(adapters, kind), "`" + kind.Elastic.PodSet + "`: `" + dotted(kind.Elastic.Path) + "`", needs, kind.Doc.Partial})
	}
	return table([]string{"kind", "pod set, and the field that the release lowers", "requires", "what runs"}, rows)
}

// placeText returns the path of the annotations, with a star for each name.
func placeText(place framework.Place) string {
	path := dotted(place.Path)
	switch {
	case place.Manager != "":
		return fmt.Sprintf("`%s`, in the patch of manager `%s`: `%s[*].%s`", path, place.Manager, dotted(place.Own.Path), dotted(place.Own.Below))
	case place.PodSet != "":
		return "`" + path + "`"
	case place.Key != "":
		return "`" + path + "[*]." + dotted(place.Below) + "`"
	default:
		return "`" + path + ".*." + dotted(place.Below) + "`"
	}
}

// readyTable lists when the pods of a job are ready for a queue that waits for them.
func readyTable(adapters []framework.Adapter) string {
	var rows [][]string
	for _, adapter := range adapters {
		kind := adapter.Kind()
		rows = append(rows, []string{nameOf(adapters, kind), kind.Doc.Ready})
	}
	return table([]string{"kind", "all pods are ready when"}, merged(rows))
}

// gangTable lists why the release of a job does not use the gangs of Kubernetes.
func gangTable(adapters []framework.Adapter) string {
	var rows [][]string
	for _, adapter := range adapters {
		kind := adapter.Kind()
		rows = append(rows, []string{nameOf(adapters, kind), kind.Doc.Gang})
	}
	return table([]string{"kind", "why the release sets nothing"}, merged(rows))
}

// nameOf returns the kind, with the version if several extensions have it.
func nameOf(adapters []framework.Adapter, kind framework.Kind) string {
	if several(adapters, kind) {
		return kind.Kind + " " + kind.Version
	}
	return kind.Kind
}

// exampleTable lists the examples with their requests.
func exampleTable(examples []samples.Sample) string {
	rows := [][]string{{"[quota-tree.yaml](quota-tree.yaml)", "[ElasticQuotaTree](../docs/tasks/give-out-quota.md)", ""}}
	for _, example := range examples {
		file := samples.File(example.Kind)
		var amounts []string
		for name, amount := range example.Total {
			amounts = append(amounts, fmt.Sprintf("%s %s", name, amount.String()))
		}
		slices.Sort(amounts)
		rows = append(rows, []string{
			fmt.Sprintf("[%s](%s)", file, file),
			fmt.Sprintf("%s `%s`", pageLink("../docs/tasks/", example.Kind), example.GroupVersion()),
			strings.Join(amounts, ", "),
		})
	}
	return table([]string{"file", "kind, and how to run it", "its QueueUnit requests"}, rows)
}

// pageList is an item of a list, with links to the pages of all kinds.
func pageList(adapters []framework.Adapter) string {
	var links []string
	for _, adapter := range adapters {
		if link := pageLink("tasks/", adapter.Kind()); !slices.Contains(links, link) {
			links = append(links, link)
		}
	}
	last := len(links) - 1
	return "- Run a " + strings.Join(links[:last], ",\n  ") + "\n  or " + links[last] + "\n"
}

// pageLink links the page of a kind in the folder of the tasks.
func pageLink(folder string, kind framework.Kind) string {
	return fmt.Sprintf("[%s](%srun-%s.md)", kind.Kind, folder, strings.ToLower(kind.Kind))
}

// several reports whether several extensions have this kind.
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

// bySuspend returns the mark other than the annotation, if any.
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

// versions returns the versions of a kind, the preferred one first, with its group.
func versions(kind framework.Kind) string {
	return codes(append([]string{kind.GroupVersion().String()}, kind.OlderVersions...), ", ")
}

func codes(words []string, between string) string {
	return "`" + strings.Join(words, "`"+between+"`") + "`"
}
