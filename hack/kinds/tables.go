package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/hack/internal/generator"
	"kube-queue.dev/kube-queue/pkg/resources"
	samples "kube-queue.dev/kube-queue/test/acceptance/kinds"
)

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

func nameTable(kinds []framework.Kind) string {
	var rows [][]string
	for _, kind := range kinds {
		what := kind.Kind + " of " + versions(kind)
		if len(kind.OtherNames) > 0 {
			what += "; the names are equivalent"
		}
		rows = append(rows, []string{generator.Codes(namesOf(kind), ", "), what})
	}
	return generator.Table([]string{"name", "kind"}, rows)
}

// kindTable lists what users need to know to queue jobs of each kind.
func kindTable(kinds []framework.Kind) string {
	var rows [][]string
	for _, kind := range kinds {
		name := generator.Codes(namesOf(kind), " or ")
		if len(kind.OtherNames) > 0 {
			name += " (equivalent)"
		}
		if slices.Contains(strings.Split(registry.Default, ","), kind.Name) {
			name += " (on by default)"
		}
		rows = append(rows, []string{pageLink("../tasks/", kind) + " (" + versions(kind) + ")", name, "the annotation" + bySuspend(kind), kind.Doc.Shows})
	}
	return generator.Table([]string{"kind", "in `--enabled-extensions`", "mark", "status while it waits"}, rows)
}

// lifeTable lists what is charged for a job, and for how long.
func lifeTable(kinds []framework.Kind) string {
	return docTable(kinds, []string{"kind", "charged", "the quota is free after", "signs that a job suspended by hand has stopped"},
		func(doc framework.Doc) []string { return []string{doc.Counts, doc.Frees, doc.Stops} })
}

// readyTable lists when the pods of a job are ready for a queue that waits for them.
func readyTable(kinds []framework.Kind) string {
	return docTable(kinds, []string{"kind", "all pods are ready when"}, func(doc framework.Doc) []string { return []string{doc.Ready} })
}

// gangTable lists why the release of a job does not use the gangs of Kubernetes.
func gangTable(kinds []framework.Kind) string {
	return docTable(kinds, []string{"kind", "why the release sets nothing"}, func(doc framework.Doc) []string { return []string{doc.Gang} })
}

func docTable(kinds []framework.Kind, head []string, texts func(framework.Doc) []string) string {
	var rows [][]string
	for _, kind := range kinds {
		rows = append(rows, append([]string{title(kinds, kind)}, texts(kind.Doc)...))
	}
	return generator.Table(head, merged(rows))
}

// placeTable lists where a release adds annotations to the pods of jobs.
func placeTable(kinds []framework.Kind) string {
	var rows [][]string
	for _, kind := range kinds {
		name := title(kinds, kind)
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
	return generator.Table([]string{"kind", "pod sets, and where they get annotations"}, rows)
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

// elasticTable lists the kinds whose jobs can start with fewer pods.
func elasticTable(kinds []framework.Kind) string {
	var rows [][]string
	for _, kind := range kinds {
		if elastic := kind.Elastic; elastic != nil {
			rows = append(rows, []string{title(kinds, kind), "`" + elastic.PodSet + "`: `" + dotted(elastic.Path) + "`", cmp.Or(elastic.Needs, "nothing"), kind.Doc.Partial})
		}
	}
	return generator.Table([]string{"kind", "pod set, and the field that the release lowers", "requires", "what runs"}, rows)
}

// exampleTable lists the examples with their requests.
func exampleTable(examples []samples.Sample) string {
	rows := [][]string{{"[quota-tree.yaml](quota-tree.yaml)", "[ElasticQuotaTree](../docs/tasks/give-out-quota.md)", ""}}
	for _, example := range examples {
		file := samples.File(example.Kind)
		var amounts []string
		for name, amount := range example.Total {
			amounts = append(amounts, fmt.Sprintf("%s %s", name, resources.FormatQuantity(string(name), amount)))
		}
		slices.Sort(amounts)
		rows = append(rows, []string{
			fmt.Sprintf("[%s](%s)", file, file),
			fmt.Sprintf("%s `%s`", pageLink("../docs/tasks/", example.Kind), example.GroupVersion()),
			strings.Join(amounts, ", "),
		})
	}
	return generator.Table([]string{"file", "kind, and how to run it", "its QueueUnit requests"}, rows)
}

// pageList returns a list item with links to the pages of all kinds.
func pageList(kinds []framework.Kind) string {
	var links []string
	for _, kind := range kinds {
		if link := pageLink("tasks/", kind); !slices.Contains(links, link) {
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

// title returns the name of a kind, with the version if several extensions have it.
func title(kinds []framework.Kind, kind framework.Kind) string {
	if slices.ContainsFunc(kinds, func(k framework.Kind) bool { return k.GroupKind() == kind.GroupKind() && k.Name != kind.Name }) {
		return kind.Kind + " " + kind.Version
	}
	return kind.Kind
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
	return generator.Codes(append([]string{kind.GroupVersion().String()}, kind.OlderVersions...), ", ")
}
