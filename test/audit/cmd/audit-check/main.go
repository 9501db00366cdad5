// Command audit-check reads the audit log of an API server and checks that the recorded writes
// conform to the laws of kube-queue.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/test/audit"
)

// Exit codes.
const (
	exitGood     = 0
	exitBroken   = 1
	exitNoAnswer = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, complaints io.Writer) int {
	broken, err := check(args, out, complaints)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return exitGood
	case broken:
		return exitBroken
	case err != nil:
		fmt.Fprintln(complaints, "audit-check:", err)
		return exitNoAnswer
	}
	return exitGood
}

// check reports whether the log violates a law.
func check(args []string, out, complaints io.Writer) (broken bool, err error) {
	var options audit.Options
	flags := pflag.NewFlagSet("audit-check", pflag.ContinueOnError)
	flags.SetOutput(complaints)
	flags.Usage = func() {
		fmt.Fprintf(complaints, "Usage: audit-check LOG [flags]\n\nLOG is the audit log of an API server at level RequestResponse, optionally compressed with gzip.\n"+
			"Exit code: 0 no violations, 1 violations, 2 unreadable log or nothing to check.\n\n%s", flags.FlagUsages())
	}
	countWrites := flags.Bool("count-writes", false, "also print the writes of the two programs per job")
	flags.BoolVar(&options.ResourceQuota, "resource-quota", false, "check against ResourceQuotas instead of the quota tree")
	flags.StringVar(&options.Oversell, "oversell-rate", "1.0", "oversell rate of kube-queue-controller")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if flags.NArg() != 1 {
		return false, fmt.Errorf("exactly one LOG is required, not %d", flags.NArg())
	}
	log, err := audit.ReadFile(flags.Arg(0))
	if err != nil {
		return false, err
	}
	report, err := log.Check(options)
	if err != nil {
		return false, err
	}
	if err := report.Print(out); err != nil || !*countWrites {
		return report.Err() != nil, err
	}
	fmt.Fprintln(out)
	return report.Err() != nil, log.Writes().Print(out)
}
