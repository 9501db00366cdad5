package scheduler_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain runs more and longer random tests than rapid does by default. -rapid.checks and -rapid.steps override that.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.checks": "1000", "rapid.steps": "80"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}
