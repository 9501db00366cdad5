package loadgen

import (
	"context"
	"slices"
	"testing"
	"time"
)

func TestClockReturnsTasksInOrderOfTime(t *testing.T) {
	c := newClock()
	for index, at := range []time.Duration{30, 10, 20} {
		c.set(at, index)
	}
	var got []int
	for {
		index, due, _, any := c.next(25)
		if !any {
			t.Fatal("the last task is missing")
		}
		if !due {
			break
		}
		got = append(got, index)
	}
	if !slices.Equal(got, []int{1, 2}) {
		t.Errorf("due at 25 are %v", got)
	}
	if _, due, wait, _ := c.next(25); due || wait != 5 {
		t.Errorf("the next is due in %d", wait)
	}
}

func TestRunningClockHandlesAnEarlierTime(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, work, ended := newClock(), make(chan int), make(chan struct{})
	c.set(time.Hour, 1)
	go func() {
		defer close(ended)
		c.run(ctx, time.Now(), work)
	}()
	c.set(0, 2)
	select {
	case got := <-work:
		if got != 2 {
			t.Errorf("got %d", got)
		}
	case <-ctx.Done():
		t.Error("no task is due")
	}
	cancel()
	<-ended
}
