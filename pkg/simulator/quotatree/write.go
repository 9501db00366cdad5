package quotatree

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/quota/tree"
	"kube-queue.dev/kube-queue/pkg/quota/tree/manifest"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// treeName is the name of a proposed tree.
const treeName = "elasticquotatree"

// Manifest returns the manifest of the tree, ready to be edited and applied. It does not use
// a YAML library, which would sort the fields by name and put the name of a node below its
// children.
func Manifest(root tree.Node) string {
	w := &writer{}
	w.line(0, "apiVersion: "+manifest.Version)
	w.line(0, "kind: "+manifest.Kind)
	w.line(0, "metadata:")
	w.line(1, "name: "+treeName)
	w.line(1, "namespace: "+manifest.Namespace)
	w.line(0, "spec:")
	w.line(1, "root:")
	w.node(2, root)
	return w.text.String()
}

type writer struct {
	text strings.Builder
	// bullet reports whether the next line is the first of a list item.
	bullet bool
}

func (w *writer) line(depth int, text string) {
	indent := strings.Repeat("  ", depth)
	if w.bullet {
		indent = indent[:len(indent)-2] + "- "
		w.bullet = false
	}
	w.text.WriteString(indent + text + "\n")
}

func (w *writer) node(depth int, n tree.Node) {
	w.line(depth, "name: "+scalar(n.Name))
	if len(n.Namespaces) > 0 {
		w.line(depth, "namespaces:")
		for _, namespace := range n.Namespaces {
			w.line(depth, "- "+scalar(namespace))
		}
	}
	w.quantities(depth, "min", n.Min)
	w.quantities(depth, "max", n.Max)
	if len(n.Attributes) > 0 {
		w.line(depth, "attributes:")
		for _, key := range slices.Sorted(maps.Keys(n.Attributes)) {
			w.line(depth+1, fmt.Sprintf("%s: %s", scalar(key), quoted(n.Attributes[key])))
		}
	}
	if len(n.Children) == 0 {
		return
	}
	w.line(depth, "children:")
	for _, child := range n.Children {
		w.bullet = true
		w.node(depth+1, child)
	}
}

func (w *writer) quantities(depth int, field string, list map[string]resource.Quantity) {
	if len(list) == 0 {
		return
	}
	w.line(depth, field+":")
	for _, name := range slices.Sorted(maps.Keys(list)) {
		w.line(depth+1, fmt.Sprintf("%s: %s", scalar(name), quoted(resources.FormatQuantity(name, list[name]))))
	}
}

// plain matches strings that every version of YAML reads as a string without quotes, except
// for the words below. It matches no number.
var (
	plain = regexp.MustCompile(`^[a-zA-Z][-a-zA-Z0-9_./]*$`)
	words = []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null"}
)

func scalar(text string) string {
	if plain.MatchString(text) && !slices.Contains(words, strings.ToLower(text)) {
		return text
	}
	return quoted(text)
}

// quoted returns the text as a JSON string, which is valid YAML.
func quoted(text string) string {
	// Marshalling a string never fails.
	asJSON, _ := json.Marshal(text)
	return string(asJSON)
}
