package arrival

import (
	"slices"
	"sync"
)

// Sender has the creation of units begin in the order in which their jobs came up, and
// reports which unit each comes after. The workers that create units take turns: a worker
// has the turn while it takes a job and decides about it, and hands it on when it begins
// to create a unit, or knows that it will create none. Nobody makes a request during a
// turn, so that a turn is short.
type Sender struct {
	// turn is full while somebody has the turn.
	turn chan struct{}
	mu   sync.Mutex
	// creating are, by namespace, those whose creation is under way, in the order in
	// which it began.
	creating map[string][]*Turn
}

// Turn is that of one worker, and what it creates after it.
type Turn struct {
	sender *Sender
	// over: somebody else may have the turn.
	over bool
	// namespace and name of the unit whose creation is under way; empty for none.
	namespace, unit string
}

// NewSender knows of no unit that is being created.
func NewSender() *Sender {
	return &Sender{turn: make(chan struct{}, 1), creating: map[string][]*Turn{}}
}

// Enter waits for the turn. Whoever has it calls End when all is done.
func (s *Sender) Enter() *Turn {
	s.turn <- struct{}{}
	return &Turn{sender: s}
}

// Begin hands the turn on, once it is noted that the creation of a unit begins. It
// returns the name of the unit that this one comes after; empty where no other one of the
// namespace is being created.
func (t *Turn) Begin(namespace, unit string) (after string) {
	t.sender.mu.Lock()
	line := t.sender.creating[namespace]
	if len(line) > 0 {
		after = line[len(line)-1].unit
	}
	t.namespace, t.unit = namespace, unit
	t.sender.creating[namespace] = append(line, t)
	t.sender.mu.Unlock()
	t.handOn()
	return after
}

// End hands the turn on, or ends the creation that has begun, whatever came of it. A
// second time it does nothing.
func (t *Turn) End() {
	switch {
	case !t.over:
		t.handOn()
	case t.unit != "":
		t.forget()
	}
}

func (t *Turn) handOn() {
	t.over = true
	<-t.sender.turn
}

func (t *Turn) forget() {
	t.sender.mu.Lock()
	defer t.sender.mu.Unlock()
	line := t.sender.creating[t.namespace]
	line = slices.DeleteFunc(line, func(other *Turn) bool { return other == t })
	if len(line) > 0 {
		t.sender.creating[t.namespace] = line
	} else {
		delete(t.sender.creating, t.namespace)
	}
	t.unit = ""
}
