package resources

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestNamesGiveDenseIDsInOrderOfFirstUse(t *testing.T) {
	n := NewNames()
	for i, name := range []string{"cpu", "memory", "cpu", "nvidia.com/gpu", "memory"} {
		want := []ID{0, 1, 0, 2, 1}[i]
		if got := n.ID(name); got != want {
			t.Errorf("ID(%q) = %d, want %d", name, got, want)
		}
	}
	for id, want := range map[ID]string{0: "cpu", 2: "nvidia.com/gpu", 3: "", -1: ""} {
		if got := n.Name(id); got != want {
			t.Errorf("Name(%d) = %q, want %q", id, got, want)
		}
	}
}

func TestAbsentIsNotZero(t *testing.T) {
	none, zero := Vector(nil), Vector{{ID: 3, Value: 0}}
	if none.Equal(zero) || none.Key() == zero.Key() {
		t.Error("no amount and an amount of zero must differ")
	}
	if _, ok := none.Get(3); ok {
		t.Error("Get found an amount that is not there")
	}
	if v, ok := zero.Get(3); !ok || v != 0 {
		t.Errorf("Get = %d, %v, want an amount of zero", v, ok)
	}
}

func vectors() *rapid.Generator[Vector] {
	return rapid.Custom(func(t *rapid.T) Vector {
		var v Vector
		for id := range ID(6) {
			if rapid.Bool().Draw(t, "present") {
				v = append(v, Amount{id * 50, rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2, 2)).Draw(t, "value")})
			}
		}
		return v
	})
}

func TestKeysAreEqualExactlyForEqualVectors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, w := vectors().Draw(t, "v"), vectors().Draw(t, "w")
		if (v.Key() == w.Key()) != v.Equal(w) {
			t.Fatalf("keys %q and %q, Equal is %v", v.Key(), w.Key(), v.Equal(w))
		}
		if v.Key() != slices.Clone(v).Key() {
			t.Fatal("the key of a copy differs")
		}
	})
}

func TestWithSetsOneEntryOfACopy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := vectors().Draw(t, "v")
		before := slices.Clone(v)
		id, value := ID(rapid.IntRange(0, 300).Draw(t, "id")), rapid.Int64().Draw(t, "value")
		w := v.With(id, value)
		if !v.Equal(before) {
			t.Fatal("With changed the vector")
		}
		for i := range w {
			if i > 0 && w[i-1].ID >= w[i].ID {
				t.Fatalf("%v is not sorted", w)
			}
		}
		for other := range ID(301) {
			got, ok := w.Get(other)
			want, wantOK := before.Get(other)
			if other == id {
				want, wantOK = value, true
			}
			if got != want || ok != wantOK {
				t.Fatalf("Get(%d) = %d, %v, want %d, %v", other, got, ok, want, wantOK)
			}
		}
	})
}
