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
// -short has no effect: rapid would make too few checks to prove the laws.
func TestMain(m *testing.M) {
	set := func(name, value string) {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	set("rapid.checks", "1000")
	set("rapid.steps", "80")
	set("rapid.seed", cmp.Or(os.Getenv("RAPID_SEED"), "0"))
	flag.Parse()
	set("test.short", "false")
	os.Exit(m.Run())
}
