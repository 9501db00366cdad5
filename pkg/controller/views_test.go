package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"kube-queue.dev/kube-queue/pkg/controller/codec"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/visibility"
)

// slowClock advances at each reading, as if each step took time.
type slowClock struct {
	*clocktesting.FakeClock
	step time.Duration
}

func (c slowClock) Now() time.Time {
	c.Step(c.step)
	return c.FakeClock.Now()
}

func TestAViewServesForAsLongAsItCosts(t *testing.T) {
	clock := slowClock{clocktesting.NewFakeClock(time.Unix(0, 0)), 0}
	views := NewViews(clock)
	l := &loop{clock: clock, core: scheduler.New(scheduler.Options{}), names: resources.NewNames(), inbox: newInbox(), views: views, reader: codec.Reader{Kinds: &codec.Kinds{}}}
	if _, err := views.Model(t.Context()); !errors.Is(err, ErrNotDeciding) {
		t.Errorf("without a loop: %v", err)
	}
	stop := views.start(l.inbox)
	ask := func() *visibility.Model {
		answered := make(chan *visibility.Model, 1)
		go func() {
			m, err := views.Model(t.Context())
			if err != nil {
				t.Error(err)
			}
			answered <- m
		}()
		for {
			select {
			case m := <-answered:
				return m
			case <-l.inbox.ready:
				for _, take := range l.inbox.take() {
					take(l)
				}
				l.makeViews()
			}
		}
	}
	first := ask()
	if ask() == first {
		t.Error("a view that has cost nothing is used twice")
	}
	l.clock = slowClock{clock.FakeClock, time.Second}
	slow := ask() // it has cost 1 s
	if ask() != slow {
		t.Error("a view that has cost 1 s is made again at once")
	}
	clock.Step((viewCost + 1) * time.Second)
	l.clock = clock
	if ask() == slow {
		t.Error("a view that has cost 1 s is used after 51 s")
	}
	clock.Step(keepViews + time.Second)
	l.now = clock.Now()
	l.makeViews()
	if views.last != nil {
		t.Error("a view that nobody has requested in a while is kept")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := views.Model(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is done: %v", err)
	}
	stop()
	if _, err := views.Model(t.Context()); !errors.Is(err, ErrNotDeciding) {
		t.Errorf("after the end of the loop: %v", err)
	}
}
