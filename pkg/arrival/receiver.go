package arrival

import (
	"slices"
	"time"
)

// Patience is how long a unit waits for the one that it comes after, whose creation may
// have failed.
const Patience = time.Second

// Unit is what a Receiver has to know of a unit.
type Unit[T any] struct {
	Key, UID string
	// After is the key of the unit that it comes after; empty where it names none.
	After string
	// Fresh: nothing was decided about the unit yet. No other is held.
	Fresh bool
	// Value is what is to be shown.
	Value T
}

// Receiver has units taken in in the order of their jobs, though job-extensions creates
// several side by side: free quota goes to the first unit that the core is shown. One
// that was created while another was being created names that one. It is held until the
// core has been shown that one.
//
// Invariant: of the units that are created, those of one namespace and kind come out in
// the order in which their creation began, where no creation fails or takes longer than
// Patience.
type Receiver[T any] struct {
	// known reports whether the core has been shown a unit.
	known func(key string) bool
	// held are the units that wait, by their keys; line is the same, who came first
	// before others; behind is by the key of whom they come after, in that order.
	held   map[string]*follower[T]
	line   []*follower[T]
	behind map[string][]*follower[T]
}

// follower is a unit that waits for the one that it comes after.
type follower[T any] struct {
	unit  Unit[T]
	until time.Time
	// gone: the unit was deleted meanwhile. Others may come after it.
	gone bool
}

// NewReceiver asks known whether the core has been shown the unit of a key.
func NewReceiver[T any](known func(string) bool) *Receiver[T] {
	return &Receiver[T]{known: known, held: map[string]*follower[T]{}, behind: map[string][]*follower[T]{}}
}

// See takes a unit and reports which units the core is to be shown now, in this order.
func (s *Receiver[T]) See(u Unit[T], now time.Time) []T {
	h := s.held[u.Key]
	switch {
	case h == nil && u.After != "" && u.After != u.Key && u.Fresh && !s.known(u.Key) && !s.known(u.After):
		s.hold(&follower[T]{unit: u, until: now.Add(Patience)})
		return nil
	case h != nil && h.unit.UID == u.UID && u.Fresh:
		u.After = h.unit.After
		h.unit = u
		return nil
	case h != nil:
		s.drop(h)
	}
	return append([]T{u.Value}, s.follow(u.Key)...)
}

// Gone takes in that a unit was deleted, and reports which units are to be shown.
func (s *Receiver[T]) Gone(key string) []T {
	if h := s.held[key]; h != nil {
		h.gone = true
		return nil
	}
	return s.follow(key)
}

// Due reports which units have waited long enough.
func (s *Receiver[T]) Due(now time.Time) (units []T) {
	for len(s.line) > 0 && !now.Before(s.line[0].until) {
		units = append(units, s.release(s.line[0])...)
	}
	return units
}

// Next is when the first will have; the zero time when none waits.
func (s *Receiver[T]) Next() time.Time {
	if len(s.line) == 0 {
		return time.Time{}
	}
	return s.line[0].until
}

func (s *Receiver[T]) hold(h *follower[T]) {
	s.held[h.unit.Key] = h
	s.line = append(s.line, h)
	s.behind[h.unit.After] = append(s.behind[h.unit.After], h)
}

func (s *Receiver[T]) drop(h *follower[T]) {
	isIt := func(other *follower[T]) bool { return other == h }
	delete(s.held, h.unit.Key)
	s.line = slices.DeleteFunc(s.line, isIt)
	if s.behind[h.unit.After] = slices.DeleteFunc(s.behind[h.unit.After], isIt); len(s.behind[h.unit.After]) == 0 {
		delete(s.behind, h.unit.After)
	}
}

// release lets one go that was held, and those that come after it.
func (s *Receiver[T]) release(h *follower[T]) (units []T) {
	s.drop(h)
	if !h.gone {
		units = append(units, h.unit.Value)
	}
	return append(units, s.follow(h.unit.Key)...)
}

// follow lets those go that come after a unit: each with all that come after it in turn,
// for they began while it was being created, and whoever stands behind it began later.
func (s *Receiver[T]) follow(key string) (units []T) {
	for len(s.behind[key]) > 0 {
		units = append(units, s.release(s.behind[key][0])...)
	}
	return units
}
