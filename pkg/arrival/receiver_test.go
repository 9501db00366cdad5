package arrival

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// shown is a unit that a Receiver delivers.
type shown struct {
	key     string
	version uint64
}

// parade is a Receiver and what it has delivered.
type parade struct {
	*Receiver[shown]
	keys []string
	// version is the version of the last delivered unit.
	version uint64
}

func newParade() *parade {
	s := &parade{}
	s.Receiver = NewReceiver[shown](func(key string) bool { return slices.Contains(s.keys, key) })
	return s
}

func (s *parade) show(units []shown) {
	for _, u := range units {
		s.keys, s.version = append(s.keys, u.key), u.version
	}
}

func (s *parade) see(u Unit[shown], after string, now time.Time) []shown {
	u.After = after
	if u.Value.key == "" {
		u.Value.key = u.Key
	}
	return s.See(u, now)
}

func TestAUnitThatComesAfterAnother(t *testing.T) {
	now := time.Unix(1000, 0)
	unit := func(key string) Unit[shown] {
		return Unit[shown]{Key: key, UID: "uid of " + key, Fresh: true, Value: shown{key, 1}}
	}
	for _, test := range []struct {
		name string
		act  func(*parade)
		want string
	}{
		{"is held until that is shown", func(s *parade) {
			s.show(s.see(unit("b"), "a", now))
			s.show(s.see(unit("a"), "", now))
		}, "[a b]"},
		{"is held for a second at most", func(s *parade) {
			s.show(s.see(unit("b"), "a", now))
			s.show(s.Due(now.Add(Patience - 1)))
			s.show(s.see(unit("c"), "", now))
			s.show(s.Due(now.Add(Patience)))
		}, "[c b]"},
		{"is not held where that is known", func(s *parade) {
			s.show(s.see(unit("a"), "", now))
			s.show(s.see(unit("b"), "a", now))
		}, "[a b]"},
		{"is not held where it comes after itself", func(s *parade) {
			s.show(s.see(unit("b"), "b", now))
		}, "[b]"},
		{"is not held where something was decided about it", func(s *parade) {
			old := unit("b")
			old.Fresh = false
			s.show(s.see(old, "a", now))
		}, "[b]"},
		{"is held on as it is later", func(s *parade) {
			s.show(s.see(unit("b"), "a", now))
			later := unit("b")
			later.Value.version = 2
			s.show(s.see(later, "a", now))
			s.show(s.see(unit("a"), "", now))
			s.keys = append(s.keys, fmt.Sprint("version ", s.version))
		}, "[a b version 2]"},
		{"is held on though it no longer says after whom", func(s *parade) {
			s.show(s.see(unit("b"), "a", now))
			s.show(s.see(unit("b"), "", now))
			s.show(s.see(unit("a"), "", now))
		}, "[a b]"},
		{"is held no more once something is decided about it", func(s *parade) {
			s.show(s.see(unit("b"), "a", now))
			over := unit("b")
			over.Fresh = false
			s.show(s.see(over, "a", now))
			s.show(s.Due(now.Add(Patience)))
		}, "[b]"},
		{"is another than the one that was held by its name", func(s *parade) {
			s.show(s.see(unit("b"), "a", now))
			other := unit("b")
			other.UID = "another"
			s.show(s.see(other, "", now))
			s.show(s.Due(now.Add(Patience)))
		}, "[b]"},
		{"is not shown once it is gone, and is waited for no longer than the one before it", func(s *parade) {
			s.show(s.see(unit("b"), "a", now))
			s.show(s.see(unit("c"), "b", now))
			s.show(s.Gone("b"))
			s.show(s.see(unit("a"), "", now))
		}, "[a c]"},
		{"goes when that is gone before it was known", func(s *parade) {
			s.show(s.see(unit("b"), "a", now))
			s.show(s.Gone("a"))
		}, "[b]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newParade()
			test.act(s)
			if got := fmt.Sprint(s.keys); got != test.want {
				t.Errorf("shown are %s, not %s", got, test.want)
			}
			if len(s.held)+len(s.waiting)+len(s.behind) > 0 {
				t.Errorf("left are %v %v %v", s.held, s.waiting, s.behind)
			}
		})
	}
}

// The Receiver sees a long chain before the unit that the chain comes after.
func TestALongChainIsShownAtOnceWithoutCopies(t *testing.T) {
	const length = 20_000
	now := time.Unix(1000, 0)
	unit := func(i int) Unit[int] {
		return Unit[int]{Key: fmt.Sprint("a/", i), After: fmt.Sprint("a/", i-1), UID: fmt.Sprint(i), Fresh: true, Value: i}
	}
	var waiting []*Receiver[int]
	for range 2 { // AllocsPerRun calls the function twice
		s := NewReceiver[int](func(string) bool { return false })
		for i := length - 1; i > 0; i-- {
			s.See(unit(i), now)
		}
		waiting = append(waiting, s)
	}
	first := unit(0)
	first.After = ""
	var got []int
	allocations := testing.AllocsPerRun(1, func() {
		got = waiting[0].See(first, now)
		waiting = waiting[1:]
	})
	if len(got) != length || !slices.IsSorted(got) {
		t.Errorf("%d units are shown, want %d in order", len(got), length)
	}
	if allocations > 100 {
		t.Errorf("it takes %v allocations, want those of one growing list", allocations)
	}
}
