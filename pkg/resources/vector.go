package resources

import (
	"encoding/binary"
	"slices"
)

// Amount is an amount of one resource in base units.
type Amount struct {
	ID    ID
	Value int64
}

// Vector contains at most one amount of each resource, sorted by ID. It must not be changed after
// its creation. The nil Vector is empty.
type Vector []Amount

// Get returns the amount of a resource, or false if the vector has none.
func (v Vector) Get(id ID) (int64, bool) {
	for _, a := range v {
		if a.ID == id {
			return a.Value, true
		}
		if a.ID > id {
			break
		}
	}
	return 0, false
}

// Equal reports whether both contain the same amounts. An amount of zero is not the same as none.
func (v Vector) Equal(w Vector) bool {
	return slices.Equal(v, w)
}

// With returns a copy in which the resource has the value.
func (v Vector) With(id ID, value int64) Vector {
	at, found := slices.BinarySearchFunc(v, id, func(a Amount, id ID) int { return int(a.ID) - int(id) })
	tail := v[at:]
	if found {
		tail = v[at+1:]
	}
	with := make(Vector, 0, len(v)+1)
	with = append(with, v[:at]...)
	with = append(with, Amount{ID: id, Value: value})
	return append(with, tail...)
}

// Key returns a map key. Keys are equal if and only if the vectors are Equal. A key consists of arbitrary bytes.
func (v Vector) Key() string {
	key := make([]byte, 0, 8*len(v))
	for _, a := range v {
		key = binary.AppendUvarint(key, uint64(uint32(a.ID)))
		key = binary.AppendVarint(key, a.Value)
	}
	return string(key)
}

// Max returns the larger amount of each resource. It returns v itself if no amount of w is larger.
func (v Vector) Max(w Vector) Vector {
	if v.covers(w) {
		return v
	}
	greatest := make(Vector, 0, len(v)+len(w))
	for len(v) > 0 && len(w) > 0 {
		switch {
		case v[0].ID < w[0].ID:
			greatest, v = append(greatest, v[0]), v[1:]
		case v[0].ID > w[0].ID:
			greatest, w = append(greatest, w[0]), w[1:]
		default:
			greatest = append(greatest, Amount{ID: v[0].ID, Value: max(v[0].Value, w[0].Value)})
			v, w = v[1:], w[1:]
		}
	}
	return append(append(greatest, v...), w...)
}

// Without returns the amounts of the resources that are not in the set.
func (v Vector) Without(ids IDs) Vector {
	var rest Vector
	for _, a := range v {
		if !ids.Has(a.ID) {
			rest = append(rest, a)
		}
	}
	return rest
}

// Plus returns the sum of both, resource by resource, capped at the largest int64. No amount may be negative.
func (v Vector) Plus(w Vector) Vector {
	if len(w) == 0 {
		return v
	}
	sum := make(Vector, 0, len(v)+len(w))
	for len(v) > 0 && len(w) > 0 {
		switch {
		case v[0].ID < w[0].ID:
			sum, v = append(sum, v[0]), v[1:]
		case v[0].ID > w[0].ID:
			sum, w = append(sum, w[0]), w[1:]
		default:
			sum = append(sum, Amount{ID: v[0].ID, Value: AddTimes(v[0].Value, w[0].Value, 1)})
			v, w = v[1:], w[1:]
		}
	}
	return append(append(sum, v...), w...)
}

// Minus returns how much more v has than w, resource by resource.
func (v Vector) Minus(w Vector) Vector {
	if len(w) == 0 {
		return v
	}
	var rest Vector
	for _, a := range v {
		less, _ := w.Get(a.ID)
		if a.Value > less {
			rest = append(rest, Amount{ID: a.ID, Value: a.Value - less})
		}
	}
	return rest
}

// covers reports whether v contains at least as much of each resource as w.
func (v Vector) covers(w Vector) bool {
	for _, a := range w {
		if has, named := v.Get(a.ID); !named || has < a.Value {
			return false
		}
	}
	return true
}
