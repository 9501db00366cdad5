package arrival

import "time"

// Patience is how long a unit waits for the unit that it comes after, whose creation may have failed.
const Patience = time.Second

// Unit is what a Receiver must know about a unit.
type Unit[T any] struct {
	Key, UID string
	// After is the key of the unit that it comes after; empty if none.
	After string
	// Fresh is whether no decision about the unit was made yet. Other units are never delayed.
	Fresh bool
	// Value is what is delivered.
	Value T
}

// Receiver delivers units in the order of their jobs, even though job-extensions creates several of
// them concurrently. The order matters because free quota goes to the first unit that the core
// receives. A unit that was created while another unit was being created names that unit, and is
// delayed until the core has received it.
//
// Invariant: new units of the same namespace and kind are delivered in the order in which their
// creation began, if no creation fails or takes longer than Patience.
type Receiver[T any] struct {
	// known reports whether the core has received the unit with the key.
	known func(key string) bool
	// held has the delayed units by key. waiting has the same units in the order in which they appeared, and behind has
	// them by the key of the unit that they come after. A dropped unit stays in waiting and behind until it is first,
	// so that dropping takes constant time.
	held    map[string]*follower[T]
	waiting []*follower[T]
	behind  map[string][]*follower[T]
}

// follower is a unit that waits for the unit that it comes after.
type follower[T any] struct {
	unit  Unit[T]
	until time.Time
	// gone is whether the unit was deleted in the meantime. Other units may come after it.
	gone bool
	// dropped is whether it no longer waits.
	dropped bool
}

// NewReceiver returns a Receiver. known reports whether the core has received the unit with the key.
func NewReceiver[T any](known func(string) bool) *Receiver[T] {
	return &Receiver[T]{known: known, held: map[string]*follower[T]{}, behind: map[string][]*follower[T]{}}
}

// See processes a unit and returns the units to deliver to the core now, in order.
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
	return s.follow([]T{u.Value}, u.Key)
}

// Gone processes the deletion of a unit and returns the units to deliver.
func (s *Receiver[T]) Gone(key string) []T {
	if h := s.held[key]; h != nil {
		h.gone = true
		return nil
	}
	return s.follow(nil, key)
}

// Due returns the units that have waited for Patience.
func (s *Receiver[T]) Due(now time.Time) (units []T) {
	for len(s.waiting) > 0 && !now.Before(s.waiting[0].until) {
		units = s.release(units, s.waiting[0])
	}
	return units
}

// Next returns when Due returns the next unit; zero if no unit waits.
func (s *Receiver[T]) Next() time.Time {
	if len(s.waiting) == 0 {
		return time.Time{}
	}
	return s.waiting[0].until
}

// Delayed calls visit with each unit that waits, in order.
func (s *Receiver[T]) Delayed(visit func(T)) {
	for _, h := range s.waiting {
		if !h.dropped {
			visit(h.unit.Value)
		}
	}
}

func (s *Receiver[T]) hold(h *follower[T]) {
	s.held[h.unit.Key] = h
	s.waiting = append(s.waiting, h)
	s.behind[h.unit.After] = append(s.behind[h.unit.After], h)
}

func (s *Receiver[T]) drop(h *follower[T]) {
	h.dropped = true
	delete(s.held, h.unit.Key)
	s.waiting = fromFirst(s.waiting)
	if s.behind[h.unit.After] = fromFirst(s.behind[h.unit.After]); len(s.behind[h.unit.After]) == 0 {
		delete(s.behind, h.unit.After)
	}
}

// fromFirst drops the units before the first one that still waits.
func fromFirst[T any](units []*follower[T]) []*follower[T] {
	for len(units) > 0 && units[0].dropped {
		units[0] = nil // the array of the slice is only released when the slice grows
		units = units[1:]
	}
	return units
}

// release appends a delayed unit and the units that come after it.
func (s *Receiver[T]) release(units []T, h *follower[T]) []T {
	s.drop(h)
	if !h.gone {
		units = append(units, h.unit.Value)
	}
	return s.follow(units, h.unit.Key)
}

// follow appends the units that come after a unit, each with the units that come after it: their creation began before
// that of the next unit behind the same unit.
func (s *Receiver[T]) follow(units []T, key string) []T {
	for len(s.behind[key]) > 0 {
		units = s.release(units, s.behind[key][0])
	}
	return units
}
