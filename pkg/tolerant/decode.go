package tolerant

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// Decode reads one object. What cannot be read makes it an Unreadable; only a
// text without readable metadata, which no API server sends, is an error.
func (k Kind) Decode(data []byte) (Object, error) {
	object, err := decode(data, func() any { return k.New() })
	if err != nil {
		return k.salvage(data, err)
	}
	return object.(Object), nil
}

// decode reads the text, which may be anybody's, into what empty makes.
func decode(data []byte, empty func() any) (any, error) {
	into := empty()
	safe := disarm(data)
	err := unmarshal(safe, into)
	if err == nil && len(safe) != len(data) {
		// What looks like a huge exponent stands where no quantity is read.
		into = empty()
		err = unmarshal(data, into)
	}
	return into, err
}

// salvage reads what can be read of an object that could not be decoded.
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

// decodeList reads a list as a whole; one that cannot be read so, item by item.
func (k Kind) decodeList(data []byte) (*List, error) {
	if list, err := k.decodeGoodList(data); err == nil {
		return list, nil
	}
	var text struct {
		metav1.ListMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := unmarshal(data, &text); err != nil {
		return nil, fmt.Errorf("reading a list of %s: %w", k.Resource, err)
	}
	list := &List{ListMeta: text.ListMeta, Items: make([]runtime.Object, len(text.Items))}
	for i, item := range text.Items {
		object, err := k.Decode(item)
		if err != nil {
			return nil, err
		}
		list.Items[i] = object
	}
	return list, nil
}

var errSuspicious = errors.New("something in it looks like a huge exponent")

func (k Kind) decodeGoodList(data []byte) (*List, error) {
	if suspicious(data) {
		return nil, errSuspicious
	}
	items := reflect.New(reflect.SliceOf(reflect.TypeOf(k.New())))
	text := struct {
		metav1.ListMeta `json:"metadata"`
		Items           any `json:"items"`
	}{Items: items.Interface()}
	if err := unmarshal(data, &text); err != nil {
		return nil, err
	}
	items = items.Elem()
	list := &List{ListMeta: text.ListMeta, Items: make([]runtime.Object, items.Len())}
	for i := range list.Items {
		item := items.Index(i)
		if item.IsNil() {
			return nil, fmt.Errorf("item %d is null", i)
		}
		list.Items[i] = item.Interface().(runtime.Object)
	}
	return list, nil
}

// unmarshal decodes as typed clients do.
func unmarshal(data []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}
