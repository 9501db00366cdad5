package command

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"

	"kube-queue.dev/kube-queue/pkg/plugin/text"
	"kube-queue.dev/kube-queue/pkg/plugin/units"
)

// field is a field of objects, by its path as in kubectl: .metadata.name, {.metadata.name} or metadata.name.
type field struct{ path *jsonpath.JSONPath }

func parseField(path string) (field, error) {
	inner := strings.TrimPrefix(strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}"), ".")
	parsed := jsonpath.New(path).AllowMissingKeys(true)
	if err := parsed.Parse("{." + inner + "}"); err != nil || inner == "" {
		return field{}, fmt.Errorf("%q is no path of a field; write it like .metadata.name", path)
	}
	return field{parsed}, nil
}

// value returns the value in an object as text; empty if it has none.
func (f field) value(object map[string]any) string {
	found, err := f.path.FindResults(object)
	if err != nil { // such as a field of a string
		return ""
	}
	var values []string
	for _, list := range found {
		for _, v := range list {
			if v.IsValid() && v.CanInterface() && v.Interface() != nil {
				values = append(values, fmt.Sprint(v.Interface()))
			}
		}
	}
	return strings.Join(values, ",")
}

// compareValues compares numbers and quantities by size, and other values as strings. Missing values come first.
func compareValues(a, b string) int {
	one, isOne := units.Amount(a).Quantity()
	other, isOther := units.Amount(b).Quantity()
	if isOne && isOther {
		return one.Cmp(other)
	}
	return cmp.Compare(a, b)
}

// columns prints fields of objects as a table, like custom-columns of kubectl.
type columns struct {
	titles []string
	fields []field
	// header prints the titles.
	header bool
}

// parseColumns reads a specification such as NAME:.metadata.name,JOB:.spec.consumerRef.name.
func parseColumns(spec string, header bool) (*columns, error) {
	c := &columns{header: header}
	for column := range strings.SplitSeq(spec, ",") {
		title, path, _ := strings.Cut(column, ":")
		f, err := parseField(path)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w; write columns like NAME:.metadata.name,JOB:.spec.consumerRef.name", column, err)
		}
		c.titles, c.fields = append(c.titles, title), append(c.fields, f)
	}
	return c, nil
}

// PrintObj prints a row for an object, or one for each object of a list.
func (c *columns) PrintObj(object runtime.Object, to io.Writer) error {
	data, err := json.Marshal(object)
	content := map[string]any{}
	if err == nil {
		err = json.Unmarshal(data, &content)
	}
	if err != nil {
		return err
	}
	items, isList := content["items"].([]any)
	if !isList {
		items = []any{content}
	}
	table := &text.Table{}
	for _, title := range c.titles {
		table.Columns = append(table.Columns, text.Column{Title: title})
	}
	for _, item := range items {
		row := make([]string, len(c.fields))
		for i, f := range c.fields {
			object, _ := item.(map[string]any)
			row[i] = cmp.Or(f.value(object), "<none>")
		}
		table.Add(row...)
	}
	return table.Write(to, text.Style{}, c.header)
}
