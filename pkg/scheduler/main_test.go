package scheduler_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain tries more and longer random lives than rapid does by default. -rapid.checks and -rapid.steps on the
// command line take precedence.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.checks": "1000", "rapid.steps": "80"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}
