package scheduler_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain tries more random lives than rapid does by itself; -rapid.checks on the
// command line still decides.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "1000"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
