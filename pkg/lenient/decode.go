package lenient

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// Decode decodes one object. An object that cannot be decoded becomes an Unreadable. Decode fails only if the text has
// no readable metadata, which no API server sends.
func (k Kind) Decode(data []byte) (Object, error) {
	object, err := decode(data, func() any { return k.New() })
	if err != nil {
		return k.salvage(data, err)
	}
	return object.(Object), nil
}

// decode decodes untrusted text into a new object from empty.
func decode(data []byte, empty func() any) (any, error) {
	into := empty()
	safe := disarm(data)
	err := unmarshal(safe, into)
	if err == nil && len(safe) != len(data) {
		// The text that looks like a huge exponent is not in a quantity.
		into = empty()
		err = unmarshal(data, into)
	}
	return into, err
}

// salvage decodes the readable part of an object that could not be decoded.
func (k Kind) salvage(data []byte, cause error) (Object, error) {
	var metadata metav1.PartialObjectMetadata
	if err := unmarshal(data, &metadata); err != nil {
		return nil, fmt.Errorf("reading the metadata of a %s: %w", k.Kind, err)
	}
	object := &Unreadable{TypeMeta: metadata.TypeMeta, ObjectMeta: metadata.ObjectMeta, Err: cause}
	empty := func() any { return k.New() }
	pruned, faults := prune(data, reflect.TypeOf(empty()))
	if partial, err := decode(pruned, empty); err == nil {
		object.Partial = partial.(Object)
	}
	if len(faults) > 0 {
		object.Err = errors.New(sentence(faults))
	}
	return object, nil
}

// readList decodes a list and calls each for every object as it arrives.
func (k Kind) readList(body io.Reader, each func(Object) error) (metav1.ListMeta, error) {
	var meta metav1.ListMeta
	list := newStream(body)
	err := list.members(func(name string) error {
		switch name {
		case "items":
			return list.elements(func(text []byte) error {
				object, err := k.Decode(text)
				if err != nil {
					return err
				}
				return each(object)
			})
		case "metadata":
			return list.next(&meta)
		}
		return list.next(&json.RawMessage{})
	})
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the list is incomplete
	}
	if err != nil {
		return metav1.ListMeta{}, fmt.Errorf("reading a list of %s: %w", k.Resource, err)
	}
	return meta, nil
}

// unmarshal decodes like typed clients.
func unmarshal(data []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}
