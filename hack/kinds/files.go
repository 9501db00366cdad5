package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"go/format"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/pod"
	"kube-queue.dev/kube-queue/hack/internal/generator"
	"kube-queue.dev/kube-queue/pkg/plugin/text"
)

// dataFile returns files/kinds.json of the chart.
func dataFile(kinds []chartKind) (string, error) {
	var text strings.Builder
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	err := out.Encode(kinds)
	return text.String(), err
}

//go:embed kinds.go.tpl
var goTemplate string

// goFile returns a package for programs that need the kinds, but not the types of all
// operators.
func goFile(kinds []chartKind) (string, error) {
	sorted := slices.SortedFunc(slices.Values(kinds), func(a, b chartKind) int { return strings.Compare(a.Kind, b.Kind) })
	var text bytes.Buffer
	if err := template.Must(template.New("").Parse(goTemplate)).Execute(&text, sorted); err != nil {
		return "", err
	}
	code, err := format.Source(text.Bytes())
	return string(code), err
}

// podKinds returns what programs must know about the kinds of pods. The chart has separate policies for them.
func podKinds(adapters []framework.Adapter) []chartKind {
	var kinds []chartKind
	for _, adapter := range adapters {
		kind := adapter.Kind()
		kinds = append(kinds, chartKind{Kind: kind.Kind, Group: kind.Group, Resource: kind.Resource, PodLabel: kind.PodLabel,
			Extensions: []chartExtension{{Name: kind.Name, Versions: kind.Versions()}}})
	}
	return kinds
}

// Patterns for generated parts of the chart's files. Each has two groups: the text between them is generated.
var (
	schemaEnum     = regexp.MustCompile(`("extensions": \{\s*"type": "array",\s*"items": \{\s*"enum": \[\n)[^\]]*(\n *\])`)
	annotatedLine  = regexp.MustCompile(`(?m)^(annotationExtensions: \[).*(\])$`)
	enabledComment = regexp.MustCompile("(?m)^(# ).*(\nenabledExtensions: )")
	operatorsLines = regexp.MustCompile(`(?m)(^  operators: \[\]\n)(?:  # .*\n)*(\n)`)
)

// inside replaces the text between the two groups of the pattern, which must match once.
func inside(pattern *regexp.Regexp, between string) generator.Edit {
	return func(text string) (string, error) {
		found := pattern.FindAllStringSubmatchIndex(text, -1)
		if len(found) != 1 {
			return "", fmt.Errorf("pattern %s matches %d times, not once", pattern, len(found))
		}
		at := found[0]
		return text[:at[3]] + between + text[at[4]:], nil
	}
}

// allNames returns all names of the kinds.
func allNames(kinds []framework.Kind) []string {
	var names []string
	for _, kind := range kinds {
		names = append(names, namesOf(kind)...)
	}
	return names
}

// namesOf returns the names of a kind, which are equivalent.
func namesOf(kind framework.Kind) []string { return append([]string{kind.Name}, kind.OtherNames...) }

// fold writes a list in quotes on indented lines of at most 100 characters.
func fold(items []string) string {
	var lines strings.Builder
	text.Wrap(&lines, "          ", `"`+strings.Join(items, `", "`)+`"`, 100)
	return strings.TrimRight(lines.String(), "\n")
}

// aboutEnabled describes the value in its comment. A test of the chart copies the comment to the README.
func aboutEnabled(kinds []framework.Kind) string {
	var names, suspended []string
	for _, kind := range kinds {
		name := kind.Name
		if len(kind.OtherNames) > 0 {
			name += " (or " + strings.Join(kind.OtherNames, ", ") + ")"
		}
		names = append(names, name)
		if kind.MarkedBySuspend && kind.Doc.Mark == "" {
			suspended = append(suspended, kind.Name)
		}
	}
	names = append(names, pod.Name)
	return fmt.Sprintf("Kinds of jobs to queue, with any of their marks: %s. List %s only in annotationExtensions: here, kube-queue also "+
		"queues and releases objects that are suspended for another reason.", strings.Join(names, ", "), and(suspended))
}

// operatorsExample lists the operators as their own manifests name them.
func operatorsExample(kinds []framework.Kind) string {
	var accounts []string
	of := map[string][]string{}
	for _, kind := range kinds {
		for _, account := range kind.Operators {
			if of[account] == nil {
				accounts = append(accounts, account)
			}
			of[account] = append(of[account], kind.Name)
		}
	}
	var example strings.Builder
	for _, account := range accounts {
		namespace, name, _ := strings.Cut(strings.TrimPrefix(account, "system:serviceaccount:"), ":")
		fmt.Fprintf(&example, "  # - {namespace: %s, serviceAccount: %s, kinds: [%s]}\n", namespace, name, strings.Join(of[account], ", "))
	}
	return example.String()
}

// and joins names with commas and "and".
func and(names []string) string {
	last := max(len(names)-1, 0)
	if last == 0 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
