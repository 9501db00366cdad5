package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// parade is a sequence and what it has had shown.
type parade struct {
	*sequence
	keys []string
	// version is that of the unit that was shown last.
	version uint64
}

func newParade() *parade {
	s := &parade{}
	s.sequence = newSequence(func(key string) bool { return slices.Contains(s.keys, key) })
	return s
}

func (s *parade) show(units []scheduler.Unit) {
	for _, u := range units {
		s.keys, s.version = append(s.keys, u.Key), u.Version
	}
}

// Units that are created side by side are shown in the order in which their creation
// began, whenever it ends, and all are shown in the end, each once.
func TestPropertyUnitsAreShownInTheOrderOfTheirJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type creation struct {
			key, after   string
			begins, ends time.Duration
			fails        bool
		}
		mayFail := rapid.Bool().Draw(t, "may fail")
		var all []*creation
		at := time.Duration(0)
		for i := range rapid.IntRange(1, 30).Draw(t, "units") {
			at += time.Duration(rapid.IntRange(0, 20).Draw(t, "pause")) * time.Millisecond
			c := &creation{key: fmt.Sprintf("a/%02d", i), begins: at, ends: at + time.Duration(rapid.IntRange(1, 100).Draw(t, "takes"))*time.Millisecond}
			c.fails = mayFail && rapid.IntRange(0, 5).Draw(t, "fails") == 0
			for _, before := range slices.Backward(all) {
				if before.ends >= c.begins { // it is being created
					c.after = before.key
					break
				}
			}
			all = append(all, c)
		}
		var want []string
		order := slices.Clone(all)
		for _, c := range all {
			if !c.fails {
				want = append(want, c.key)
			}
		}
		slices.SortStableFunc(order, func(a, b *creation) int { return int(a.ends - b.ends) })

		s, start := newParade(), time.Unix(1000, 0)
		for _, c := range order {
			if !c.fails {
				s.show(s.see(scheduler.Unit{Key: c.key, Facts: scheduler.Facts{UID: c.key}}, c.after, start.Add(c.ends)))
			}
		}
		if !mayFail && !slices.Equal(s.keys, want) {
			t.Fatalf("shown are %v, not %v", s.keys, want)
		}
		if next := s.next(); !next.IsZero() {
			s.show(s.due(next.Add(at + patience)))
		}
		if slices.Sort(s.keys); !slices.Equal(s.keys, want) {
			t.Fatalf("in the end %v were shown, not %v", s.keys, want)
		}
		if len(s.held)+len(s.line)+len(s.behind) > 0 {
			t.Fatalf("left are %v %v %v", s.held, s.line, s.behind)
		}
	})
}

func TestAUnitThatComesAfterAnother(t *testing.T) {
	now := time.Unix(1000, 0)
	unit := func(key string) scheduler.Unit {
		return scheduler.Unit{Key: key, Facts: scheduler.Facts{UID: "uid of " + key, Version: 1}}
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
			s.show(s.due(now.Add(patience - 1)))
			s.show(s.see(unit("c"), "", now))
			s.show(s.due(now.Add(patience)))
		}, "[c b]"},
		{"is not held where that is known", func(s *parade) {
			s.show(s.see(unit("a"), "", now))
			s.show(s.see(unit("b"), "a", now))
		}, "[a b]"},
		{"is not held where it comes after itself", func(s *parade) {
			s.show(s.see(unit("b"), "b", now))
		}, "[b]"},
		{"is not held where it was told something", func(s *parade) {
			told := unit("b")
			told.Reason = "QuotaExceeded"
			s.show(s.see(told, "a", now))
		}, "[b]"},
		{"is not held where it has its quota", func(s *parade) {
			has := unit("b")
			has.Phase = scheduler.Running
			s.show(s.see(has, "a", now))
		}, "[b]"},
		{"is held on as it is later", func(s *parade) {
			s.show(s.see(unit("b"), "a", now))
			later := unit("b")
			later.Version = 2
			s.show(s.see(later, "a", now))
			s.show(s.see(unit("a"), "", now))
			s.keys = append(s.keys, fmt.Sprint("version ", s.version))
		}, "[a b version 2]"},
		{"is held no more once it has ended", func(s *parade) {
			s.show(s.see(unit("b"), "a", now))
			over := unit("b")
			over.Phase = scheduler.Ended
			s.show(s.see(over, "a", now))
			s.show(s.due(now.Add(patience)))
		}, "[b]"},
		{"is another than the one that was held by its name", func(s *parade) {
			s.show(s.see(unit("b"), "a", now))
			other := unit("b")
			other.UID = "another"
			s.show(s.see(other, "", now))
			s.show(s.due(now.Add(patience)))
		}, "[b]"},
		{"is not shown once it is gone, and is waited for no longer than the one before it", func(s *parade) {
			s.show(s.see(unit("b"), "a", now))
			s.show(s.see(unit("c"), "b", now))
			s.show(s.gone("b"))
			s.show(s.see(unit("a"), "", now))
		}, "[a c]"},
		{"goes when that is gone before it was known", func(s *parade) {
			s.show(s.see(unit("b"), "a", now))
			s.show(s.gone("a"))
		}, "[b]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newParade()
			test.act(s)
			if got := fmt.Sprint(s.keys); got != test.want {
				t.Errorf("shown are %s, not %s", got, test.want)
			}
			if len(s.held)+len(s.line)+len(s.behind) > 0 {
				t.Errorf("left are %v %v %v", s.held, s.line, s.behind)
			}
		})
	}
}
