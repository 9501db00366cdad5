package controller

import "sync"

// inbox takes in what has happened, without ever blocking who tells it.
type inbox struct {
	mu    sync.Mutex
	items []input
	ready chan struct{}
}

// input is something for the loop's goroutine to take in.
type input func(*loop)

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

func (b *inbox) put(i input) {
	b.mu.Lock()
	b.items = append(b.items, i)
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

func (b *inbox) take() []input {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items = nil
	return items
}
