package controller

import (
	"sync"

	"kube-queue.dev/kube-queue/pkg/follow"
)

// inbox is an unbounded queue of inputs. put never blocks.
type inbox struct {
	mu    sync.Mutex
	items []input
	ready chan struct{}
}

// input is something that the goroutine of the loop processes.
type input func(*loop)

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

func (b *inbox) put(i input) {
	b.mu.Lock()
	b.items = append(b.items, i)
	b.mu.Unlock()
	follow.Wake(b.ready)
}

func (b *inbox) take() []input {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items = nil
	return items
}
