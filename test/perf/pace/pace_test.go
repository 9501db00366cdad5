package pace

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

func TestEachTaskRunsOnceAndNotBeforeItsTime(t *testing.T) {
	const every = time.Millisecond
	start := time.Now()
	var times [20]atomic.Int32
	due := func(index int) time.Duration { return time.Duration(index) * every }
	err := InTime(t.Context(), start, 4, len(times), due, func(_ context.Context, index int) error {
		times[index].Add(1)
		if early := due(index) - time.Since(start); early > 0 {
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

func TestTheFirstErrorEndsTheTasks(t *testing.T) {
	broken := errors.New("broken")
	far := func(index int) time.Duration { return time.Duration(index) * time.Hour }
	if err := InTime(t.Context(), time.Now(), 2, 3, far, func(context.Context, int) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
