// Command testprofile measures what tests use: wall time, processor time, idle time, and clusters.
//
// Terms. A target is a target of the Makefile, such as verify. A usage is what a target, the test binary of a package
// or a test took, with all its processes. A sample is the processor time of a test binary at a moment. Samples give
// the time of each test.
//
// The folder that KUBE_QUEUE_PROFILE names has all measurements: the usages with their samples, and the events
// of go test, which gotestsum writes.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// folderVariable names the folder of the profile. Without it, nothing is measured.
const folderVariable = "KUBE_QUEUE_PROFILE"

const usageText = `Usage:
  testprofile exec PROGRAM [ARGUMENT...]      run a test binary and measure it; for go test -exec
  testprofile step NAME COMMAND [ARGUMENT...] run a target and measure it
  testprofile report [all]                    print the slowest of what was measured, or all
  testprofile times FILE [TARGET]             write the times of targets into the table of a page; with
                                              TARGET, only the total, as that of TARGET

The measurements are in the folder $` + folderVariable + `.
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		if exit, is := errors.AsType[*exec.ExitError](err); is && exit.ExitCode() > 0 {
			os.Exit(exit.ExitCode())
		}
		fmt.Fprintln(os.Stderr, "testprofile:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	folder := os.Getenv(folderVariable)
	switch command := strings.Join(args[:min(1, len(args))], ""); {
	case command == "exec" && len(args) > 1:
		name, err := tested(args[1])
		if err != nil {
			return err
		}
		return measure(folder, Usage{Name: name, Test: true}, args[1:])
	case command == "step" && len(args) > 2:
		return measure(folder, Usage{Name: args[1]}, args[2:])
	case command == "report", command == "times" && len(args) > 1:
		profile, err := read(folder)
		if err != nil {
			return err
		}
		if command == "times" {
			return profile.refresh(args[1], strings.Join(args[2:], ""))
		}
		return profile.print(os.Stdout, len(args) > 1 && args[1] == "all")
	}
	fmt.Fprint(os.Stderr, usageText)
	return errors.New("wrong arguments")
}
