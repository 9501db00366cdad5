package controller

import (
	"slices"
	"time"

	"kube-queue.dev/kube-queue/pkg/scheduler"
)

// patience is how long a unit waits for the one that it comes after, whose creation may
// have failed.
const patience = time.Second

// sequence has units taken in in the order of their jobs, though job-extensions creates
// several side by side: free quota goes to the first unit that the core is shown. One
// that was created while another was being created names that one. It is held until the
// core has been shown that one.
//
// Invariant: of the units that are created, those of one namespace and kind come out in
// the order in which their creation began, where no creation fails or takes longer than
// patience.
type sequence struct {
	// known tells whether the core has been shown a unit.
	known func(key string) bool
	// held are the units that wait, by their keys; line is the same, who came first
	// before others; behind is by the key of whom they come after, in that order.
	held   map[string]*follower
	line   []*follower
	behind map[string][]*follower
}

// follower is a unit that waits for the one that it comes after.
type follower struct {
	unit  scheduler.Unit
	after string
	until time.Time
	// gone: the unit was deleted meanwhile. Others may come after it.
	gone bool
}

func newSequence(known func(string) bool) *sequence {
	return &sequence{known: known, held: map[string]*follower{}, behind: map[string][]*follower{}}
}

// see takes a unit, and the key of the one that it comes after if it names one, and
// tells which units the core is to be shown now, in this order.
func (s *sequence) see(u scheduler.Unit, after string, now time.Time) []scheduler.Unit {
	h := s.held[u.Key]
	fresh := u.Phase == scheduler.Waiting && u.Reason == ""
	switch {
	case h == nil && after != "" && after != u.Key && fresh && !s.known(u.Key) && !s.known(after):
		s.hold(&follower{unit: u, after: after, until: now.Add(patience)})
		return nil
	case h != nil && h.unit.UID == u.UID && fresh:
		h.unit = u
		return nil
	case h != nil:
		s.drop(h)
	}
	return append([]scheduler.Unit{u}, s.follow(u.Key)...)
}

// gone takes in that a unit was deleted, and tells which units are to be shown.
func (s *sequence) gone(key string) []scheduler.Unit {
	if h := s.held[key]; h != nil {
		h.gone = true
		return nil
	}
	return s.follow(key)
}

// due tells which units have waited long enough.
func (s *sequence) due(now time.Time) (units []scheduler.Unit) {
	for len(s.line) > 0 && !now.Before(s.line[0].until) {
		units = append(units, s.release(s.line[0])...)
	}
	return units
}

// next is when the first will have; the zero time when none waits.
func (s *sequence) next() time.Time {
	if len(s.line) == 0 {
		return time.Time{}
	}
	return s.line[0].until
}

func (s *sequence) hold(h *follower) {
	s.held[h.unit.Key] = h
	s.line = append(s.line, h)
	s.behind[h.after] = append(s.behind[h.after], h)
}

func (s *sequence) drop(h *follower) {
	isIt := func(other *follower) bool { return other == h }
	delete(s.held, h.unit.Key)
	s.line = slices.DeleteFunc(s.line, isIt)
	if s.behind[h.after] = slices.DeleteFunc(s.behind[h.after], isIt); len(s.behind[h.after]) == 0 {
		delete(s.behind, h.after)
	}
}

// release lets one go that was held, and those that come after it.
func (s *sequence) release(h *follower) (units []scheduler.Unit) {
	s.drop(h)
	if !h.gone {
		units = append(units, h.unit)
	}
	return append(units, s.follow(h.unit.Key)...)
}

// follow lets those go that come after a unit: each with all that come after it in turn,
// for they began while it was being created, and whoever stands behind it began later.
func (s *sequence) follow(key string) (units []scheduler.Unit) {
	for len(s.behind[key]) > 0 {
		units = append(units, s.release(s.behind[key][0])...)
	}
	return units
}
