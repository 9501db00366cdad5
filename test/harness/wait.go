package harness

import (
	"context"
	"testing"
	"time"
)

// Must fails the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Eventually waits until done returns true. After the timeout it fails the test with the last state
// that done returned.
func Eventually(t testing.TB, timeout time.Duration, what string, done func() (bool, string)) {
	t.Helper()
	if timeout >= 30*time.Second { // a fast machine needs seconds; give a slow one more
		timeout *= 3
	}
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
			t.Fatalf("timed out after %v waiting until %s; last state: %s", timeout, what, state)
		case <-tick.C:
		}
	}
}

// Never fails the test if happens returns true within the given time.
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
