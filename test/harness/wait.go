package harness

import (
	"context"
	"testing"
	"time"
)

// Must fails the test with an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Eventually waits until done says so, and fails the test with the last state
// that it reported when that takes too long.
func Eventually(t testing.TB, timeout time.Duration, what string, done func() (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, state := done()
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited %v in vain until %s; last seen: %s", timeout, what, state)
		case <-tick.C:
		}
	}
}

// Never watches for a while that something does not come true.
func Never(t testing.TB, during time.Duration, what string, happens func() (bool, string)) {
	t.Helper()
	end := time.NewTimer(during)
	defer end.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if yes, state := happens(); yes {
			t.Fatalf("%s: %s", what, state)
		}
		select {
		case <-end.C:
			return
		case <-tick.C:
		}
	}
}

// EventuallyQuiet waits without a word for what may take some time each time.
func EventuallyQuiet(t testing.TB, done func() bool) {
	t.Helper()
	Eventually(t, 2*time.Minute, "the program is killed or the story has ended", func() (bool, string) { return done(), "neither" })
}
