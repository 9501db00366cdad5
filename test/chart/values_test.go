package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/test/require"
)

// value is a value in values.yaml with a comment. Users can set it.
type value struct {
	path, comment, standard string
}

var valueLine = regexp.MustCompile(`^( *)([A-Za-z]+):`)

// documented reads values.yaml. The comment of a value is the line above it and applies to all
// values below it.
func documented(t *testing.T) []value {
	t.Helper()
	var found []value
	var path []string
	var comment string
	inside := -1
	for line := range strings.Lines(read(t, filepath.Join(chart, "values.yaml"))) {
		trimmed := strings.TrimSpace(line)
		match := valueLine.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(trimmed, "# "):
			comment = strings.TrimPrefix(trimmed, "# ")
			continue
		case match == nil || inside >= 0 && len(match[1]) > inside:
		default:
			depth := len(match[1]) / 2
			inside = -1
			path = append(path[:min(depth, len(path))], match[2])
			if comment != "" {
				inside = len(match[1])
				found = append(found, value{path: strings.Join(path, "."), comment: comment})
			}
		}
		comment = ""
	}
	defaults := defaultValues(t)
	for i, v := range found {
		standard, err := json.Marshal(at(defaults, v.path))
		require.NoError(t, err)
		found[i].standard = string(standard)
	}
	return found
}

func TestEveryValueHasAComment(t *testing.T) {
	reported := map[string]bool{}
	for _, v := range documented(t) {
		reported[v.path] = true
	}
	var look func(path string, values map[string]any)
	look = func(path string, values map[string]any) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			here := strings.TrimPrefix(path+"."+name, ".")
			if reported[here] {
				continue
			}
			below, isMap := values[name].(map[string]any)
			if !isMap || len(below) == 0 {
				t.Errorf("values.yaml: %s has no comment right above it", here)
				continue
			}
			look(here, below)
		}
	}
	look("", defaultValues(t))
}

func TestTheReadmeOfTheChartListsEveryValue(t *testing.T) {
	var table strings.Builder
	table.WriteString("| value | default | meaning |\n|---|---|---|\n")
	for _, v := range documented(t) {
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", v.path, v.standard, strings.ReplaceAll(v.comment, "|", `\|`))
	}
	file := filepath.Join(chart, "README.md")
	text := read(t, file)
	before, rest, hasBegin := strings.Cut(text, "<!-- values -->\n")
	_, after, hasEnd := strings.Cut(rest, "<!-- /values -->\n")
	if !hasBegin || !hasEnd {
		t.Fatalf("%s has no place for the table of values", file)
	}
	golden(t, file, before+"<!-- values -->\n"+table.String()+"<!-- /values -->\n"+after)
}

// Setting null makes helm remove a value and its default.
func TestNullIsNoneOfWhateverIsListed(t *testing.T) {
	var none []string
	for _, v := range documented(t) {
		if v.standard == "{}" || strings.HasPrefix(v.standard, "[") {
			none = append(none, v.path+"=null")
		}
	}
	if rendered := render(t, "--set", strings.Join(none, ",")); len(kind(rendered, "Deployment")) != 2 {
		t.Errorf("%v: there are %d objects", none, len(rendered))
	}
}

// The case everything shows that the templates use each value.
func TestTheCaseEverythingChangesEveryValue(t *testing.T) {
	var set map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(read(t, values("everything"))), &set))
	standard := map[string]bool{
		// The cases minimal and resourcequota test these values.
		"crds.enabled": true, "crds.keep": true, "crds.elasticQuotaTree": true, "crds.queueUnit": true, "crds.queue": true, "crds.provisioningRequestConfig": true, "crds.reviews": true,
		"rbac.create": true, "rbac.userRoles": true, "managedNamespaces.enabled": true, "podDisruptionBudget.enabled": true,
		"metrics.enabled": true,
	}
	for _, v := range documented(t) {
		got, err := json.Marshal(at(set, v.path))
		require.NoError(t, err)
		if same := string(got) == "null" || string(got) == v.standard; same != standard[v.path] {
			t.Errorf("%s is %s in %s, and by default %s", v.path, got, values("everything"), v.standard)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

func defaultValues(t *testing.T) map[string]any {
	t.Helper()
	var all map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(read(t, filepath.Join(chart, "values.yaml"))), &all))
	return all
}

func at(values map[string]any, path string) any {
	var found any = values
	for name := range strings.SplitSeq(path, ".") {
		below, _ := found.(map[string]any)
		found = below[name]
	}
	return found
}
