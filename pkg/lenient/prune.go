package lenient

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// mostFaults is the maximum number of faults that are reported for one object.
const mostFaults = 5

// prune removes as few parts of the text as possible so that it can be decoded into the type, and reports what is wrong
// with each part.
func prune(data []byte, t reflect.Type) (kept []byte, faults []string) {
	p := &pruner{}
	kept, ok := p.prune("", data, t)
	if !ok {
		kept = []byte("{}")
	}
	return kept, p.faults
}

func sentence(faults []string) string {
	if more := len(faults) - mostFaults; more > 0 {
		faults = append(slices.Clone(faults[:mostFaults]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(faults, "; ")
}

type pruner struct{ faults []string }

func (p *pruner) prune(path string, data []byte, t reflect.Type) (kept []byte, ok bool) {
	into, err := decode(data, func() any { return reflect.New(t).Interface() })
	if err == nil {
		return data, true
	}
	if t.Kind() == reflect.Pointer {
		return p.prune(path, data, t.Elem())
	}
	if _, itself := into.(json.Unmarshaler); !itself {
		switch t.Kind() {
		case reflect.Struct:
			return p.members(path, data, func(name string) (reflect.Type, bool) { return field(t, name) })
		case reflect.Map:
			return p.members(path, data, func(string) (reflect.Type, bool) { return t.Elem(), true })
		case reflect.Slice, reflect.Array:
			return p.elements(path, data, t.Elem())
		}
	}
	p.fault(path, data, err)
	return nil, false
}

// members prunes a JSON object. typeOf returns the type of each member that is decoded.
func (p *pruner) members(path string, data []byte, typeOf func(name string) (reflect.Type, bool)) ([]byte, bool) {
	var members map[string]json.RawMessage
	if err := unmarshal(data, &members); err != nil {
		p.fault(path, data, err)
		return nil, false
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		t, read := typeOf(name)
		if !read {
			continue
		}
		kept, ok := p.prune(join(path, name), members[name], t)
		if ok {
			members[name] = kept
		} else {
			delete(members, name)
		}
	}
	return encode(members)
}

func (p *pruner) elements(path string, data []byte, t reflect.Type) ([]byte, bool) {
	var elements, good []json.RawMessage
	if err := unmarshal(data, &elements); err != nil {
		p.fault(path, data, err)
		return nil, false
	}
	for i, element := range elements {
		if kept, ok := p.prune(fmt.Sprintf("%s[%d]", path, i), element, t); ok {
			good = append(good, kept)
		}
	}
	return encode(good)
}

func (p *pruner) fault(path string, data []byte, err error) {
	const most = 80
	text := string(data)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	p.faults = append(p.faults, fmt.Sprintf("%s: %s cannot be read: %v", path, text, err))
}

func encode(parts any) ([]byte, bool) {
	text, err := json.Marshal(parts)
	return text, err == nil
}

func join(path, name string) string {
	switch {
	case strings.ContainsAny(name, "./"):
		return fmt.Sprintf("%s[%s]", path, name)
	case path == "":
		return name
	}
	return path + "." + name
}

// field returns the type of the field of the struct with the JSON name.
func field(t reflect.Type, name string) (reflect.Type, bool) {
	for f := range t.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == name || tag == "" && !f.Anonymous && f.Name == name:
			return f.Type, true
		case f.Anonymous && tag == "" && inner.Kind() == reflect.Struct:
			if found, ok := field(inner, name); ok {
				return found, true
			}
		}
	}
	return nil, false
}
