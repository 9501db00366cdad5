// Command audit-check reads the audit log of an API server and checks that the recorded writes
// conform to the laws of kube-queue.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"kube-queue.dev/kube-queue/test/audit"
)

// Exit codes.
const (
	exitGood     = 0
	exitBroken   = 1
	exitNoAnswer = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type settings struct {
	path        string
	options     audit.Options
	json        bool
	countWrites bool
	use         bool
}

func run(args []string, out, complaints io.Writer) int {
	s, err := parse(args, complaints)
	if err == nil {
		var broken bool
		if broken, err = s.check(out); err == nil && broken {
			return exitBroken
		}
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitGood
	case err != nil:
		fmt.Fprintln(complaints, "audit-check:", err)
		return exitNoAnswer
	}
	return exitGood
}

func parse(args []string, out io.Writer) (*settings, error) {
	s := &settings{}
	flags := flag.NewFlagSet("audit-check", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		fmt.Fprintf(out, "Usage: audit-check LOG [flags]\n\nLOG is the audit log of an API server at level RequestResponse, optionally compressed with gzip.\n"+
			"Exit code: 0 no violations, 1 violations, 2 unreadable log or nothing to check.\n\n")
		flags.PrintDefaults()
	}
	flags.BoolVar(&s.json, "json", false, "print the report as JSON")
	flags.BoolVar(&s.countWrites, "count-writes", false, "also print the writes of the two programs per job")
	flags.BoolVar(&s.options.ResourceQuota, "resource-quota", false, "check against ResourceQuotas instead of the quota tree")
	flags.BoolVar(&s.options.Growth, "growth", false, "also check that a quota node that is above its max because of pods shows it by the condition OverQuota")
	flags.BoolVar(&s.use, "use", false, "also print per namespace how well ResourceQuotas were used while jobs waited; requires --resource-quota")
	flags.StringVar(&s.options.Oversell, "oversell-rate", "1.0", "oversell rate of kube-queue-controller")
	flags.StringVar(&s.options.Controller, "controller", audit.DefaultController, "user of kube-queue-controller")
	flags.StringVar(&s.options.Extensions, "extensions", audit.DefaultExtensions, "user of job-extensions")
	grace := flags.Duration("grace", 10*time.Second, "time for which a unit may hold quota after the end of its job")
	lag := flags.Duration("tree-lag", 2*time.Second, "time after a change of the tree or a ResourceQuota during which the previous version is still accepted for admissions")
	podLag := flags.Duration("pod-lag", 2*time.Second, "time after the creation of a pod during which a quota tree, and for a pod outside of the queue a ResourceQuota, need not count it yet")
	suspendLag := flags.Duration("suspend-lag", time.Second, "time for which an operator may still create pods of a job after it was suspended again")
	until := flags.String("until", "", "time until which the log is complete, in RFC 3339 format, or now; empty: the last entry")
	skip := flags.String("skip", "", "comma-separated list of checks to skip; known checks: "+strings.Join(audit.CheckNames(), ", "))
	paths, err := interspersed(flags, args)
	if err != nil {
		return nil, err
	}
	if len(paths) != 1 {
		return nil, fmt.Errorf("exactly one LOG is required, not %d", len(paths))
	}
	s.path = paths[0]
	s.options.Grace, s.options.TreeLag, s.options.PodLag, s.options.SuspendLag = grace, lag, podLag, suspendLag
	if s.use && !s.options.ResourceQuota {
		return nil, errors.New("--use requires --resource-quota")
	}
	if *skip != "" {
		s.options.Skip = strings.Split(*skip, ",")
	}
	switch *until {
	case "":
	case "now":
		s.options.Until = time.Now()
	default:
		if s.options.Until, err = time.Parse(time.RFC3339, *until); err != nil {
			return nil, fmt.Errorf("--until: %w", err)
		}
	}
	return s, nil
}

// interspersed parses flags before and after the arguments.
func interspersed(flags *flag.FlagSet, args []string) ([]string, error) {
	var plain []string
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			return plain, nil
		}
		plain = append(plain, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

func (s *settings) check(out io.Writer) (broken bool, err error) {
	log, err := audit.ReadFile(s.path)
	if err != nil {
		return false, err
	}
	report, err := log.Check(s.options)
	if err != nil && !errors.Is(err, audit.ErrNothing) {
		return false, err
	}
	nothing := err
	answer := struct {
		Report audit.Report      `json:"report"`
		Writes *audit.WriteTable `json:"writes,omitempty"`
		Use    []audit.QuotaUse  `json:"use,omitempty"`
	}{Report: report}
	if s.countWrites {
		table, err := log.Writes(s.options)
		if err != nil {
			return false, err
		}
		answer.Writes = &table
	}
	if s.use {
		if answer.Use, err = log.Use(s.options); err != nil {
			return false, err
		}
	}
	if s.json {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(answer)
	} else {
		err = report.Print(out)
		if err == nil && answer.Writes != nil {
			fmt.Fprintln(out)
			err = answer.Writes.Print(out)
		}
		for _, use := range answer.Use {
			fmt.Fprintf(out, "\n%s\n", use)
		}
	}
	if err == nil {
		err = nothing
	}
	return report.Err() != nil, err
}
