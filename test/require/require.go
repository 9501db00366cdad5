// Package require ends a test whose next steps would make no sense.
package require

// TB is a test, also one of rapid.
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
