// Command kube-queue-simulator plays a trace of jobs against a quota tree, with the
// scheduling core of kube-queue-controller in virtual time, and reports how long the jobs
// would have waited.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kube-queue.dev/kube-queue/pkg/program/identity"
)

const name = "kube-queue-simulator"

// Exit statuses.
const (
	exitClean       = 0
	exitError       = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// errInterrupted ends the program after what was done has been told.
var errInterrupted = errors.New("interrupted")

// usageError is the fault of the command line.
type usageError struct{ error }

func main() {
	os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := command(stdout, stderr)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitClean
	case errors.Is(err, errInterrupted):
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return exitInterrupted
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "%s: %v\nSee %s --help.\n", name, err, name)
		return exitUsage
	default:
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return exitError
	}
}

func command(stdout, stderr io.Writer) *cobra.Command {
	opts := &options{}
	cmd := &cobra.Command{
		Use:     name + " --trace FILE (--tree FILE | --capacity RESOURCE=AMOUNT,...)",
		Short:   "Try a quota tree on a trace of jobs before applying it",
		Long:    longHelp,
		Example: examples,
		Version: identity.Version(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unexpected argument %q: only flags are understood", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.complete(); err != nil {
				return usageError{err}
			}
			return opts.run(cmd.Context(), stdout, stderr)
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	cmd.SetUsageTemplate(strings.ReplaceAll(cmd.UsageTemplate(), ".FlagUsages ", ".FlagUsagesWrapped 100 "))
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	cmd.Flags().SortFlags = false
	opts.addFlags(cmd.Flags())
	opts.addCompletion(cmd)
	return cmd
}

const longHelp = `Plays a trace of jobs against a quota tree and reports how long the jobs would have
waited, how much of the quota was used and how fairly it was shared. What decides is the
scheduling core of kube-queue-controller itself, in virtual time: a trace of 80,000 jobs
takes seconds. Nothing is read from a cluster, and nothing is written to one.

The trace is a CSV file with a header:

  timestamp   when the job was submitted: 2026-01-31T08:00:00Z, 2026-01-31 08:00:00, or seconds
  duration    for how many seconds it ran
  namespace   whom it belonged to (or: cluster)
  num_gpus    how many GPUs it took, of the resource that --gpu-resource names
  request:R   how much of the resource R it took, as in request:cpu (any number of columns)
  priority    its priority (optional)
  name        its name (optional)

or a file in the Standard Workload Format (.swf), of which processors count as cpu. Either
may be compressed with gzip; "-" is the standard input.

The tree is a manifest with an ElasticQuotaTree, as kubectl get -o yaml prints it too. Who
has none yet says --capacity, and --quotas what kind of tree to propose; --print-tree prints
the proposal, to be edited.`

const examples = `  # What would waits be with 600 GPUs and a guarantee for each tenant by what it uses?
  kube-queue-simulator --trace jobs.csv --capacity nvidia.com/gpu=600

  # Compare the policies, with a picture
  kube-queue-simulator --trace jobs.csv --capacity nvidia.com/gpu=600 --policy RoundRobin,Block,Priority --plot waits.svg

  # Begin a tree of one's own, try it, apply it
  kube-queue-simulator --trace jobs.csv --capacity nvidia.com/gpu=600 --print-tree > tree.yaml
  kube-queue-simulator --trace jobs.csv --tree tree.yaml
  kubectl apply -f tree.yaml

  # Try the tree that is in force
  kubectl -n kube-system get elasticquotatree -o yaml | kube-queue-simulator --trace jobs.csv --tree -

  # A log of the Parallel Workloads Archive, tenants by group
  kube-queue-simulator --trace CTC-SP2.swf.gz --tenant group --capacity cpu=430`
