package ray

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	rayv1alpha1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1alpha1"
)

func TestObjectsOfTheOlderVersionFitTheTypesOfTheNewer(t *testing.T) {
	for _, pair := range [][2]any{
		{rayv1alpha1.RayJob{}, rayv1.RayJob{}},
		{rayv1alpha1.RayCluster{}, rayv1.RayCluster{}},
	} {
		older, newer := reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1])
		for _, why := range misfits(older, newer, older.Name()) {
			t.Error(why)
		}
	}
}

func TestMisfitsAreFound(t *testing.T) {
	type word string
	type older struct {
		Same    word                 `json:"same"`
		Gone    int                  `json:"gone"`
		Other   int                  `json:"other"`
		Inside  []struct{ A *int32 } `json:"inside"`
		Mapped  map[string]bool      `json:"mapped"`
		Ignored int                  `json:"-"`
	}
	type newer struct {
		Same   string              `json:"same,omitempty"`
		Other  string              `json:"other"`
		Inside []struct{ A int64 } `json:"inside"`
		Mapped map[string]string   `json:"mapped"`
	}
	got := misfits(reflect.TypeFor[older](), reflect.TypeFor[newer](), "x")
	want := []string{"x.gone is missing", "x.other is string, was int", "x.inside.A is int64, was int32", "x.mapped is string, was bool"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// misfits returns the JSON fields of the older type that the newer type does not have, or
// has with another kind.
func misfits(older, newer reflect.Type, at string) []string {
	older, newer = pointed(older), pointed(newer)
	switch {
	case older == newer:
		return nil
	case older.Kind() != newer.Kind():
		return []string{fmt.Sprintf("%s is %s, was %s", at, newer.Kind(), older.Kind())}
	}
	switch older.Kind() {
	case reflect.Slice, reflect.Map:
		return misfits(older.Elem(), newer.Elem(), at)
	case reflect.Struct:
	default:
		return nil
	}
	var found []string
	have := map[string]reflect.Type{}
	for _, field := range jsonFields(newer) {
		have[field.name] = field.of
	}
	for _, field := range jsonFields(older) {
		if have[field.name] == nil {
			found = append(found, at+"."+field.name+" is missing")
			continue
		}
		found = append(found, misfits(field.of, have[field.name], at+"."+field.name)...)
	}
	return found
}

func pointed(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

type jsonField struct {
	name string
	of   reflect.Type
}

// jsonFields returns the JSON fields of a struct. An embedded struct is listed by its own
// name, which is sufficient: both versions embed the same structs.
func jsonFields(t reflect.Type) []jsonField {
	var fields []jsonField
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			name = field.Name
		}
		if name != "-" {
			fields = append(fields, jsonField{name, field.Type})
		}
	}
	return fields
}
