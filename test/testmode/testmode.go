// Package testmode separates the tests of make test from those that only make test-all runs. It uses the
// short mode of Go. Build tags would hide the tests from go vet.
package testmode

import "testing"

// OnlyInTestAll skips a test that only make test-all runs. why names the test that proves the same in make test, or
// says why none is needed.
func OnlyInTestAll(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("only make test-all runs this test: " + why)
	}
}
