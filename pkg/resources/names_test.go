package resources

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAnIDIsAssignedAgainOnlyWhenItsNameIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names, known := NewNames(), map[string]ID{}
		t.Repeat(map[string]func(*rapid.T){
			"name": func(t *rapid.T) {
				name := fmt.Sprint("name-", rapid.IntRange(0, 30).Draw(t, "name"))
				id := names.ID(name)
				if before, was := known[name]; was && before != id {
					t.Fatalf("%s has ID %d after %d", name, id, before)
				}
				known[name] = id
			},
			"forget": func(t *rapid.T) {
				var used IDs
				for _, name := range slices.Sorted(maps.Keys(known)) {
					if id := known[name]; rapid.Bool().Draw(t, "keep") {
						used.Add(id)
					} else {
						delete(known, name)
					}
				}
				names.Forget(used)
			},
			"": func(t *rapid.T) {
				if names.Len() != len(known) {
					t.Fatalf("%d names, want %d", names.Len(), len(known))
				}
				taken := map[ID]string{}
				for name, id := range known {
					if other, is := taken[id]; is || names.Name(id) != name {
						t.Fatalf("ID %d is that of %q and %q, and has name %q", id, name, other, names.Name(id))
					}
					if taken[id] = name; int(id) > 30 {
						t.Fatalf("ID %d is not dense", id)
					}
				}
			},
		})
	})
}
