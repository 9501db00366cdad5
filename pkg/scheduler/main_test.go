package scheduler_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain runs more and longer random tests than rapid does by default. -rapid.checks and -rapid.steps override that. make
// test sets RAPID_SEED, so that its result depends only on the change; make test-all draws other histories each time.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.checks": "1000", "rapid.steps": "80", "rapid.seed": cmp.Or(os.Getenv("RAPID_SEED"), "0")} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}
