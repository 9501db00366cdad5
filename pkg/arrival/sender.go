package arrival

import (
	"slices"
	"sync"
)

// Sender starts the creation of units in the order of their jobs, and reports which unit each unit comes after. Workers
// take turns. A worker has the turn while it takes a job from the queue and decides about it. The turn ends when the
// worker starts to create a unit or decides to create none. Turns are short, because no requests are made during them.
type Sender struct {
	// turn is full while a worker has the turn.
	turn chan struct{}
	mu   sync.Mutex
	// creating are the creations in progress by namespace, in the order in which they began.
	creating map[string][]*Turn
}

// Turn is the turn of one worker and the creation that follows it.
type Turn struct {
	sender *Sender
	// over is whether the turn has ended.
	over bool
	// namespace and unit identify the unit that is being created; empty if none.
	namespace, unit string
}

// NewSender returns a Sender without creations in progress.
func NewSender() *Sender {
	return &Sender{turn: make(chan struct{}, 1), creating: map[string][]*Turn{}}
}

// Enter waits for the turn. The caller must call End when it is done.
func (s *Sender) Enter() *Turn {
	s.turn <- struct{}{}
	return &Turn{sender: s}
}

// Begin records that the creation of a unit begins, and ends the turn unless it has ended. It returns the name of the
// unit that this unit comes after; empty if no other unit of the namespace is being created.
func (t *Turn) Begin(namespace, unit string) (after string) {
	t.sender.mu.Lock()
	creating := t.sender.creating[namespace]
	if len(creating) > 0 {
		after = creating[len(creating)-1].unit
	}
	t.namespace, t.unit = namespace, unit
	t.sender.creating[namespace] = append(creating, t)
	t.sender.mu.Unlock()
	if !t.over {
		t.handOn()
	}
	return after
}

// End ends the turn, or the creation once it has begun, whatever its result. A second call does nothing.
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
	creating := t.sender.creating[t.namespace]
	creating = slices.DeleteFunc(creating, func(other *Turn) bool { return other == t })
	if len(creating) > 0 {
		t.sender.creating[t.namespace] = creating
	} else {
		delete(t.sender.creating, t.namespace)
	}
	t.unit = ""
}
