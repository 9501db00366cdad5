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

// APIVersion is the API version of the configuration files.
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
	return s.take("", fields)
}

// decode reads the single object of a file.
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
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		fields, isObject := value.(map[string]any)
		switch {
		case isObject:
			found = append(found, fields)
		case value != nil: // nil is a document with only comments
			return nil, fmt.Errorf("must contain an object with %s and %s, not %s", fieldAPIVersion, fieldKind, written(value))
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("must contain exactly one object, not %d", len(found))
	}
	return found[0], nil
}

// take sets the values of a section of the file. Its name ends with a dot; the top level has an empty name.
func (s *Set) take(section string, fields map[string]any) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		path, value := section+name, fields[name]
		setting, within := s.byField(path), s.within(path+".")
		below, isSection := value.(map[string]any)
		switch {
		case setting == nil && len(within) == 0:
			errs = append(errs, s.unknown(section, path))
		case value == nil: // null is the same as an absent field
		case setting != nil:
			errs = append(errs, setting.take(s.file+": "+path, value))
		case !isSection:
			errs = append(errs, fmt.Errorf("%s: %s: must be an object with the fields %s, not %s", s.file, path, strings.Join(within, ", "), written(value)))
		default:
			errs = append(errs, s.take(path+".", below))
		}
	}
	return errors.Join(errs...)
}

func (s *Setting) take(origin string, value any) error {
	text, err := s.Form.toFlag(value)
	if err != nil {
		return fmt.Errorf("%s: %w", origin, err)
	}
	return s.give(origin, text)
}

func (s *Set) unknown(section, path string) error {
	place, known := "", s.within(section)
	if section == "" {
		known = slices.Sorted(slices.Values(append(known, fieldAPIVersion, fieldKind)))
	} else {
		place = " in " + strings.TrimSuffix(section, ".")
	}
	return fmt.Errorf("%s: unknown field %q; known fields%s: %s", s.file, path, place, strings.Join(known, ", "))
}

// within lists the fields and sections of a section.
func (s *Set) within(section string) []string {
	var names []string
	for _, setting := range s.All() {
		if rest, ok := strings.CutPrefix(setting.Field, section); ok {
			name, _, _ := strings.Cut(rest, ".")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
