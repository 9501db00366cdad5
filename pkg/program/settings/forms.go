package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Form is how a setting is written in the configuration file. The flag separates the entries of lists and objects by
// commas.
type Form struct {
	// toFlag converts a value of the file to the syntax of the flag, and toFile converts it back.
	toFlag func(value any) (string, error)
	toFile func(text string) any
}

// Amount is a number or a string, for decimals and quantities.
func Amount() Form { return oneOf("a number or a string", asText, is[json.Number], is[string]) }

// List is a list of strings.
func List() Form {
	return list("a list of strings", oneOf("a string", asText, is[string]).without(",", "comma; write one entry per value"))
}

// Switches is an object of booleans; the flag has name=true.
func Switches() Form { return object("names to true or false", boolean()) }

// Texts is an object of strings; the flag has name=text.
func Texts() Form { return object("names to a string without commas", plain()) }

// byType is a number, a boolean or a string, depending on the type of the flag.
func byType(flag *pflag.Flag) Form {
	switch flag.Value.Type() {
	case "bool":
		return boolean()
	case "int", "int32", "float32", "Level":
		return number()
	default:
		return oneOf("a string", asText, is[string])
	}
}

func boolean() Form {
	return oneOf("true or false", func(text string) any { return text == "true" }, is[bool])
}

func number() Form {
	return oneOf("a number", func(text string) any { return json.Number(text) }, is[json.Number])
}

// plain is a string without the comma that separates entries of a flag.
func plain() Form { return oneOf("a string without commas", asText, isPlain) }

func asText(text string) any { return text }

// is accepts a value of a JSON type.
func is[T string | bool | json.Number](value any) (string, bool) {
	typed, ok := value.(T)
	return fmt.Sprint(typed), ok
}

func isPlain(value any) (string, bool) {
	text, ok := value.(string)
	return text, ok && !strings.Contains(text, ",")
}

// oneOf is a value that one of the functions accepts.
func oneOf(want string, toFile func(string) any, is ...func(any) (string, bool)) Form {
	return Form{toFile: toFile, toFlag: func(value any) (string, error) {
		for _, is := range is {
			if text, ok := is(value); ok {
				return text, nil
			}
		}
		return "", mustBe(want, value)
	}}
}

// without rejects a value that contains a separator of the flag.
func (f Form) without(separator, name string) Form {
	return Form{toFile: f.toFile, toFlag: func(value any) (string, error) {
		text, err := f.toFlag(value)
		if err == nil && strings.Contains(text, separator) {
			err = fmt.Errorf("%q contains a %s", text, name)
		}
		return text, err
	}}
}

func list(want string, entry Form) Form {
	return Form{toFlag: func(value any) (string, error) {
		values, ok := value.([]any)
		if !ok {
			return "", mustBe(want, value)
		}
		texts := make([]string, len(values))
		for i, value := range values {
			var err error
			if texts[i], err = entry.toFlag(value); err != nil {
				return "", fmt.Errorf("entry %d: %w", i+1, err)
			}
		}
		return strings.Join(texts, ","), nil
	}, toFile: func(text string) any {
		values := []any{}
		for _, text := range split(text) {
			values = append(values, entry.toFile(text))
		}
		return values
	}}
}

func object(want string, each Form) Form {
	return Form{toFlag: func(value any) (string, error) {
		byName, ok := value.(map[string]any)
		if !ok {
			return "", fmt.Errorf("must map %s, not %s", want, written(value))
		}
		var texts []string
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			text, err := field(byName, name, each)
			if err != nil {
				return "", err
			}
			texts = append(texts, name+"="+text)
		}
		return strings.Join(texts, ","), nil
	}, toFile: func(text string) any {
		byName := map[string]any{}
		for _, entry := range split(text) {
			name, text, _ := strings.Cut(entry, "=")
			byName[name] = each.toFile(text)
		}
		return byName
	}}
}

func split(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(entry string) bool { return entry == "" })
}

// field reads one field; its errors name the field.
func field(fields map[string]any, name string, form Form) (string, error) {
	text, err := form.toFlag(fields[name])
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return text, err
}

func mustBe(want string, value any) error {
	return fmt.Errorf("must be %s, not %s", want, written(value))
}

// written formats a value in the syntax of the file.
func written(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
