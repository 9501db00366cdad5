package settings

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// APIVersion of the configuration files.
const APIVersion = "config.kube-queue.dev/v1alpha1"

const (
	fieldAPIVersion = "apiVersion"
	fieldKind       = "kind"
)

func (s *Set) readFile() error {
	data, err := os.ReadFile(s.file)
	if err != nil {
		return fmt.Errorf("--%s: %w", flagFile, err)
	}
	fields, err := decode(data)
	if err != nil {
		return fmt.Errorf("%s: %w", s.file, err)
	}
	for _, header := range [...]struct{ name, want string }{{fieldAPIVersion, APIVersion}, {fieldKind, s.kind}} {
		if got := fields[header.name]; got != header.want {
			return fmt.Errorf("%s: %s must be %s for %s, not %s", s.file, header.name, header.want, s.program, written(got))
		}
		delete(fields, header.name)
	}
	return errors.Join(s.take("", fields)...)
}

// decode reads the single document of a file.
func decode(data []byte) (map[string]any, error) {
	var found []map[string]any
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		// A duplicate key is an error, because it is unclear which value is meant.
		text, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, err
		}
		fields, err := decodeJSON(text)
		if err != nil {
			return nil, err
		}
		if fields != nil { // nil is a document with only comments
			found = append(found, fields)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("must contain exactly one object, not %d", len(found))
	}
	return found[0], nil
}

func decodeJSON(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	switch fields := value.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return fields, nil
	default:
		return nil, fmt.Errorf("must contain an object with %s and %s, not %s", fieldAPIVersion, fieldKind, written(value))
	}
}

// take sets the values of a section of the file. The top level has an empty name.
func (s *Set) take(section string, fields map[string]any) []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		path, value := strings.TrimPrefix(section+"."+name, "."), fields[name]
		setting, within := s.byField(path), s.within(path)
		below, isSection := value.(map[string]any)
		switch {
		case setting == nil && len(within) == 0:
			errs = append(errs, fmt.Errorf("%s: unknown field %q; known fields%s: %s", s.file, path, place(section), strings.Join(s.within(section), ", ")))
		case value == nil: // null is the same as an absent field
		case setting != nil:
			if err := s.takeField(setting, value); err != nil {
				errs = append(errs, err)
			}
		case !isSection:
			errs = append(errs, fmt.Errorf("%s: %s: must be an object with the fields %s, not %s", s.file, path, strings.Join(within, ", "), written(value)))
		default:
			errs = append(errs, s.take(path, below)...)
		}
	}
	return errs
}

func (s *Set) takeField(setting *Setting, value any) error {
	origin := s.file + ": " + setting.Field
	text, err := setting.Form.text(setting.flag, value)
	if err != nil {
		return fmt.Errorf("%s: %w", origin, err)
	}
	return setting.give(origin, text)
}

func place(section string) string {
	if section == "" {
		return ""
	}
	return " in " + section
}

// within lists the fields of a section of the file, and those of the top level for "".
func (s *Set) within(section string) []string {
	var names []string
	if section != "" {
		section += "."
	} else {
		names = []string{fieldAPIVersion, fieldKind}
	}
	for _, setting := range s.All() {
		if rest, ok := strings.CutPrefix(setting.Field, section); ok {
			name, _, _ := strings.Cut(rest, ".")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
