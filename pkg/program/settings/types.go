package settings

import (
	"fmt"
	"strings"
)

// Fields of an entry of Types. An entry without label and value is for all other pods.
const (
	resourceField = "resource"
	labelField    = "nodeLabel"
	valueField    = "nodeLabelValue"
	typeField     = "type"
)

// deviceType converts an entry of Types to the syntax of the flag.
func deviceType(entry any) (string, error) {
	fields, ok := entry.(map[string]any)
	if !ok {
		return "", fmt.Errorf("must be an object with %s, %s, %s and %s, not %s", resourceField, labelField, valueField, typeField, written(entry))
	}
	if err := onlyFields(fields, resourceField, labelField, valueField, typeField); err != nil {
		return "", err
	}
	_, hasLabel := fields[labelField]
	_, hasValue := fields[valueField]
	if hasLabel != hasValue {
		return "", fmt.Errorf("must set both of %s and %s, or neither", labelField, valueField)
	}
	needed := []string{resourceField, typeField}
	if hasLabel {
		needed = append(needed, labelField, valueField)
	}
	texts := map[string]string{}
	for _, name := range needed {
		text, err := withoutColon(oneOf(fields[name], "a string without commas", isPlain))
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		texts[name] = text
	}
	selector := ""
	if hasLabel {
		selector = texts[labelField] + "=" + texts[valueField]
	}
	return texts[resourceField] + ":" + selector + ":" + texts[typeField], nil
}

// withoutColon rejects a text with the colon that separates parts of an entry of a flag.
func withoutColon(text string, err error) (string, error) {
	if err == nil && strings.Contains(text, ":") {
		err = fmt.Errorf("%q contains a colon", text)
	}
	return text, err
}

// deviceTypeFields converts an entry of the flag to the syntax of the file.
func deviceTypeFields(entry string) map[string]any {
	resource, rest, _ := strings.Cut(entry, ":")
	selector, kind, _ := strings.Cut(rest, ":")
	fields := map[string]any{resourceField: resource, typeField: kind}
	if label, value, selects := strings.Cut(selector, "="); selects {
		fields[labelField], fields[valueField] = label, value
	}
	return fields
}
