package migration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Read reads all objects of a YAML or JSON file with any number of documents. It replaces lists by their items.
// Messages show the name. The error is an *InputError with all documents that cannot be read.
func Read(name string, from io.Reader) ([]Document, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(from))
	var read []Document
	var faults Faults
	for number := 1; ; number++ {
		source := fmt.Sprintf("%s: document %d", name, number)
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return read, faults.Error()
		}
		if err != nil {
			return nil, &InputError{Faults: append(faults, fmt.Sprintf("%s: %v", source, err))}
		}
		for _, part := range parts(text) {
			found, err := readOne(part, source)
			if err != nil {
				faults = append(faults, err.Error())
			}
			read = append(read, found...)
		}
	}
}

// parts splits JSON objects that follow each other without a separator. The YAML parser reads only the first.
func parts(text []byte) (all [][]byte) {
	for {
		decoder := json.NewDecoder(bytes.NewReader(text))
		if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) || decoder.Decode(new(json.RawMessage)) != nil {
			return append(all, text)
		}
		end := decoder.InputOffset()
		all, text = append(all, text[:end]), text[end:]
	}
}

func readOne(text []byte, source string) ([]Document, error) {
	// Reject duplicate keys, because only one of the values would count.
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("%s: invalid YAML: %w", source, err)
	}
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return nil, nil
	}
	var value any
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(raw, &value); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return objectsOf(value, source)
}

// objectsOf returns the object, or the items of a list.
func objectsOf(value any, source string) ([]Document, error) {
	fields, is := value.(map[string]any)
	if !is {
		return nil, fmt.Errorf("%s: the document is not an object; write one with apiVersion and kind", source)
	}
	object := &unstructured.Unstructured{Object: fields}
	kind, isText := fields["kind"].(string)
	if _, hasVersion := fields["apiVersion"].(string); !isText || kind == "" || !hasVersion {
		return nil, fmt.Errorf("%s: the object has no apiVersion or kind; set both", source)
	}
	items, isList := fields["items"].([]any)
	if !strings.HasSuffix(kind, "List") || !isList && fields["items"] != nil {
		if err := CheckMetadata(fields["metadata"]); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", source, kind, err)
		}
		return []Document{{Source: source, Object: object}}, nil
	}
	var documents []Document
	for i, item := range items {
		found, err := objectsOf(item, fmt.Sprintf("%s, item %d", source, i+1))
		if err != nil {
			return nil, err
		}
		documents = append(documents, found...)
	}
	return documents, nil
}

// CheckMetadata checks the metadata that is read without another check. Otherwise, a label that is not text would look
// as if it were missing.
func CheckMetadata(metadata any) error {
	fields, is := metadata.(map[string]any)
	if !is {
		if metadata == nil {
			return nil
		}
		return errors.New("metadata is not an object")
	}
	for _, field := range []string{"name", "namespace", "uid"} {
		if _, is := fields[field].(string); fields[field] != nil && !is {
			return fmt.Errorf("metadata.%s %v is not text; write it in quotes", field, fields[field])
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		keys, is := fields[field].(map[string]any)
		if fields[field] != nil && !is {
			return fmt.Errorf("metadata.%s is not an object", field)
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if _, is := keys[key].(string); !is {
				return fmt.Errorf("metadata.%s: the value of %s is not text: %v; write it in quotes", field, key, keys[key])
			}
		}
	}
	return nil
}

// Decode reads the object into a type that lists the fields to convert, and returns the paths of all other fields.
// The fields of status and metadata are not returned.
func Decode(d Document, into any) (unknown []string, err error) {
	raw, err := d.Object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	strict, err := sigsjson.UnmarshalStrict(raw, into)
	if err != nil {
		return nil, err
	}
	for _, e := range strict {
		field, is := strings.CutPrefix(e.Error(), "unknown field ")
		if !is {
			return nil, e
		}
		field = strings.Trim(field, `"`)
		if top, _, _ := strings.Cut(field, "."); top != "status" && top != "metadata" && top != "apiVersion" && top != "kind" {
			unknown = append(unknown, field)
		}
	}
	return unknown, nil
}

// Text is a quantity as it is written: a string or a number. It is not parsed, because parsing a huge exponent takes
// very long.
type Text string

// UnmarshalJSON reads a string or a number.
func (t *Text) UnmarshalJSON(raw []byte) error {
	s := string(bytes.TrimSpace(raw))
	switch {
	case s == "null":
		return nil
	case strings.HasPrefix(s, `"`):
		return sigsjson.UnmarshalCaseSensitivePreserveInts(raw, (*string)(t))
	case strings.HasPrefix(s, "{"), strings.HasPrefix(s, "["), s == "true", s == "false":
		return fmt.Errorf("%s is no quantity", s)
	default:
		*t = Text(s)
		return nil
	}
}
