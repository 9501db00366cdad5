// Package require ends a test whose next steps would make no sense.
package require

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// TB is a test, including one of rapid.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// NoError ends the test if err is not nil.
func NoError(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ErrorSays ends the test if err is nil or lacks one of the words.
func ErrorSays(t TB, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("there is no error")
	}
	Says(t, "the error", fmt.Sprint(err), words...)
}

// Says ends the test if a text lacks one of the words.
func Says(t TB, what any, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Fatal(fmt.Sprintf("%v does not say %q:\n%s", what, word, text))
		}
	}
}

// Patience is how long Eventually waits: much longer than anything takes on a slow machine.
const Patience = time.Minute

// Eventually waits until check returns nil. After Patience it ends the test with the last error.
func Eventually(t TB, what string, check func() error) {
	t.Helper()
	end := time.Now().Add(Patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(fmt.Sprintf("not within %v: %s: %v", Patience, what, err))
		}
		<-time.After(pause)
	}
}

// Becomes waits until a condition is true.
func Becomes(t TB, what string, is func() bool) {
	t.Helper()
	Eventually(t, what, func() error {
		if is() {
			return nil
		}
		return errors.New("it is not so yet")
	})
}
