package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Form is how a field of the configuration file is written.
type Form int

const (
	// ByType: a number, a boolean or a string, depending on the type of the flag.
	ByType Form = iota
	// Amount: a number or a string, for decimals and quantities.
	Amount
	// List: a list of strings; the flag separates them by commas.
	List
	// Switches: an object of booleans; the flag has name=true, separated by commas.
	Switches
	// Patterns: file patterns, each with a verbosity; the flag has pattern=N, separated by
	// commas.
	Patterns
	// Texts: an object of strings; the flag has name=text, separated by commas.
	Texts
	// Types: types of devices; the flag has RESOURCE:LABEL=VALUE:TYPE, separated by commas.
	Types
	// Resources: requests and limits of namespaces; the flag has
	// NAMESPACE:requests.RESOURCE=AMOUNT:limits.RESOURCE=AMOUNT, separated by commas.
	Resources
)

// Fields of an entry of Patterns, the same as in component-base.
const (
	patternField   = "filePattern"
	verbosityField = "verbosity"
)

// text converts a value of the file to the syntax of the flag.
func (f Form) text(flag *pflag.Flag, value any) (string, error) {
	switch f {
	case Amount:
		return oneOf(value, "a number or a string", isNumber, isText)
	case List:
		return join(value, "a list of strings", func(entry any) (string, error) {
			text, err := oneOf(entry, "a string", isText)
			if strings.Contains(text, ",") {
				err = fmt.Errorf("%q contains a comma; write one entry per value", text)
			}
			return text, err
		})
	case Switches:
		return switches(value)
	case Patterns:
		return join(value, "a list", pattern)
	case Texts:
		return texts(value)
	case Types:
		return join(value, "a list", deviceType)
	case Resources:
		return join(value, "a list", namespaceResources)
	}
	switch {
	case flag.Value.Type() == "bool":
		return oneOf(value, "true or false", isBool)
	case numeric(flag):
		return oneOf(value, "a number", isNumber)
	default:
		return oneOf(value, "a string", isText)
	}
}

func isText(value any) (string, bool) {
	text, ok := value.(string)
	return text, ok
}

func isNumber(value any) (string, bool) {
	number, ok := value.(json.Number)
	return number.String(), ok
}

func isBool(value any) (string, bool) {
	b, ok := value.(bool)
	return strconv.FormatBool(b), ok
}

func oneOf(value any, want string, is ...func(any) (string, bool)) (string, error) {
	for _, is := range is {
		if text, ok := is(value); ok {
			return text, nil
		}
	}
	return "", fmt.Errorf("must be %s, not %s", want, written(value))
}

// written formats a value in the syntax of the file.
func written(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

func join(value any, want string, each func(any) (string, error)) (string, error) {
	entries, ok := value.([]any)
	if !ok {
		return "", fmt.Errorf("must be %s, not %s", want, written(value))
	}
	var texts []string
	for i, entry := range entries {
		text, err := each(entry)
		if err != nil {
			return "", fmt.Errorf("entry %d: %w", i+1, err)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ","), nil
}

func switches(value any) (string, error) {
	return object(value, "true or false", isBool)
}

func texts(value any) (string, error) {
	return object(value, "a string without commas", isPlain)
}

// isPlain accepts a string without the comma that separates entries of a flag.
func isPlain(value any) (string, bool) {
	text, ok := isText(value)
	return text, ok && !strings.Contains(text, ",")
}

// object converts an object to entries name=value.
func object(value any, want string, is func(any) (string, bool)) (string, error) {
	byName, ok := value.(map[string]any)
	if !ok {
		return "", fmt.Errorf("must map names to %s, not %s", want, written(value))
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		text, err := oneOf(byName[name], want, is)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		texts = append(texts, name+"="+text)
	}
	return strings.Join(texts, ","), nil
}

func pattern(entry any) (string, error) {
	fields, ok := entry.(map[string]any)
	if !ok {
		return "", fmt.Errorf("must be an object with %s and %s, not %s", patternField, verbosityField, written(entry))
	}
	if err := onlyFields(fields, patternField, verbosityField); err != nil {
		return "", err
	}
	file, err := oneOf(fields[patternField], "a string", isText)
	if err != nil {
		return "", fmt.Errorf("%s: %w", patternField, err)
	}
	verbosity, err := oneOf(fields[verbosityField], "a number", isNumber)
	if err != nil {
		return "", fmt.Errorf("%s: %w", verbosityField, err)
	}
	return file + "=" + verbosity, nil
}

// onlyFields rejects a field that an entry does not have.
func onlyFields(fields map[string]any, known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("unknown field %q; known fields: %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

func numeric(flag *pflag.Flag) bool {
	switch flag.Value.Type() {
	case "int", "int32", "float32", "Level":
		return true
	default:
		return false
	}
}

// value converts the text of a flag to a value of the file.
func (f Form) value(flag *pflag.Flag, text string) any {
	switch {
	case f == List:
		return append([]string{}, split(text)...)
	case f == Switches:
		byName := map[string]bool{}
		for _, entry := range split(text) {
			name, on, _ := strings.Cut(entry, "=")
			byName[name] = on == "true"
		}
		return byName
	case f == Patterns:
		entries := []map[string]any{}
		for _, entry := range split(text) {
			file, verbosity, _ := strings.Cut(entry, "=")
			entries = append(entries, map[string]any{patternField: file, verbosityField: json.Number(verbosity)})
		}
		return entries
	case f == Texts:
		byName := map[string]string{}
		for _, entry := range split(text) {
			name, text, _ := strings.Cut(entry, "=")
			byName[name] = text
		}
		return byName
	case f == Types:
		entries := []map[string]any{}
		for _, entry := range split(text) {
			entries = append(entries, deviceTypeFields(entry))
		}
		return entries
	case f == Resources:
		entries := []map[string]any{}
		for _, entry := range split(text) {
			entries = append(entries, namespaceResourcesFields(entry))
		}
		return entries
	case f == ByType && flag.Value.Type() == "bool":
		return text == "true"
	case f == ByType && numeric(flag):
		return json.Number(text)
	default:
		return text
	}
}

func split(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(entry string) bool { return entry == "" })
}
