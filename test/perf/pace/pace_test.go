package pace

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

func TestCrewEndsWithItsWorkOrTheFirstError(t *testing.T) {
	work := make(chan int, 10)
	for i := range 10 {
		work <- i
	}
	close(work)
	var done atomic.Int32
	if err := Crew(t.Context(), 3, work, func(context.Context, int) error { done.Add(1); return nil }); err != nil || done.Load() != 10 {
		t.Errorf("did %d, %v", done.Load(), err)
	}
	endless := make(chan int)
	go func() {
		for {
			select {
			case endless <- 1:
			case <-t.Context().Done():
				return
			}
		}
	}()
	broken := errors.New("broken")
	if err := Crew(t.Context(), 3, endless, func(context.Context, int) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestEachTaskRunsOnceAndNotBeforeItsTime(t *testing.T) {
	const every = time.Millisecond
	start := time.Now()
	var times [20]atomic.Int32
	err := InTime(t.Context(), start, len(times), func(index int) time.Duration { return time.Duration(index) * every }, 4, func(_ context.Context, index int) error {
		times[index].Add(1)
		if early := time.Duration(index)*every - time.Since(start); early > 0 {
			t.Errorf("%d was done %v before its time", index, early)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for index := range times {
		if n := times[index].Load(); n != 1 {
			t.Errorf("%d was done %d times", index, n)
		}
	}
}

func TestErrorEndsInTime(t *testing.T) {
	broken := errors.New("broken")
	far := func(index int) time.Duration { return time.Duration(index) * time.Hour }
	if err := InTime(t.Context(), time.Now(), 3, far, 2, func(context.Context, int) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
