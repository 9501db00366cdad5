// Command testprofile measures what tests take: wall time, processor time, time in which they only
// wait, and clusters.
//
// Terms. A step is a command of the Makefile, such as hack/verify.sh. A usage is what one test binary
// or step took, with all its processes. A sample is the processor time of a test binary at a moment,
// from which the time of each of its tests follows.
//
// The folder that KUBE_QUEUE_PROFILE names has all measurements: the usages and samples, and the events
// of go test, which gotestsum writes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// folderVariable names the folder of the profile. Without it nothing is measured.
const folderVariable = "KUBE_QUEUE_PROFILE"

const usageText = `Usage:
  testprofile exec PROGRAM [ARGUMENT...]     run a test binary and measure it; for go test -exec
  testprofile step NAME COMMAND [ARGUMENT...] run a command and measure it
  testprofile report [--packages N] [--tests N] print what was measured; 0: all
  testprofile times FILE [TARGET]            write the times of targets into the table of a page; with
                                             TARGET, only the total, as that of TARGET

The measurements are in the folder $` + folderVariable + `.
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 0 {
			os.Exit(exit.ExitCode())
		}
		fmt.Fprintln(os.Stderr, "testprofile:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	folder := os.Getenv(folderVariable)
	switch {
	case len(args) > 1 && args[0] == "exec":
		return measure(folder, "", args[1:], true)
	case len(args) > 2 && args[0] == "step":
		return measure(folder, args[1], args[2:], false)
	case (len(args) == 2 || len(args) == 3) && args[0] == "times":
		profile, err := read(folder)
		if err != nil {
			return err
		}
		return profile.refresh(args[1], strings.Join(args[2:], ""))
	case len(args) > 0 && args[0] == "report":
		flags := flag.NewFlagSet("report", flag.ContinueOnError)
		packages := flags.Int("packages", 10, "number of packages; 0: all")
		tests := flags.Int("tests", 20, "number of tests; 0: all, with their subtests")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		profile, err := read(folder)
		if err != nil {
			return err
		}
		return profile.print(os.Stdout, *packages, *tests)
	}
	fmt.Fprint(os.Stderr, usageText)
	return errors.New("wrong arguments")
}
