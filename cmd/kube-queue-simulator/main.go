// Command kube-queue-simulator replays a trace of jobs against a quota tree, with the
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
	"kube-queue.dev/kube-queue/pkg/program/usage"
)

const name = "kube-queue-simulator"

// Exit statuses.
const (
	exitClean       = 0
	exitError       = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// errInterrupted ends the program after the completed results have been printed.
var errInterrupted = errors.New("interrupted")

// usageError is an error in the command line.
type usageError struct{ error }

func main() {
	os.Exit(execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cmd := command(stdin, stdout, stderr)
	cmd.AddCommand(checkCommand(stdin, stdout))
	cmd.SetArgs(args)
	executed, err := cmd.ExecuteContextC(ctx)
	var wrong usageError
	switch {
	case err == nil:
		return exitClean
	case errors.Is(err, errInterrupted):
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return exitInterrupted
	case errors.As(err, &wrong):
		usage.Print(stderr, executed.CommandPath(), wrong.error, executed.Flags())
		return exitUsage
	case errors.Is(err, errInvalid):
		return exitError
	default:
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return exitError
	}
}

func command(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	opts := &options{}
	cmd := &cobra.Command{
		Use:     name + " --trace FILE (--tree FILE | --capacity RESOURCE=AMOUNT,...)",
		Short:   "Try a quota tree on a trace of jobs before applying it",
		Long:    longHelp,
		Example: examples,
		Version: identity.Version(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unexpected argument %q: expected a flag, or the command check or completion", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.complete(); err != nil {
				return usageError{err}
			}
			return opts.run(cmd.Context(), stdin, stdout, stderr)
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

const longHelp = `Replays a trace of past jobs against a quota tree. Reports how long the jobs would have
waited, how much of the quota they would have used and how fairly they would have shared it.
The simulator runs the scheduling core of kube-queue-controller in virtual time: a trace of
80,000 jobs takes seconds. It does not connect to a cluster.

The trace is a CSV file with a header:

  timestamp   submission time: 2026-01-31T08:00:00Z, 2026-01-31 08:00:00, or seconds
  duration    run time in seconds
  namespace   namespace of the job (or: cluster)
  num_gpus    number of GPUs that the job requested; --gpu-resource sets the resource name
  request:R   amount of resource R that the job requested, such as request:cpu (any number
              of columns)
  priority    priority of the job (optional)
  limit       maximum execution time in seconds (optional)
  expected    expected run time in seconds (optional)
  name        name of the job (optional)

or a file in the Standard Workload Format (.swf), whose processors count as cpu. Both may
be compressed with gzip. "-" reads the standard input.

The tree is the manifest of an ElasticQuotaTree, for example the output of kubectl get -o
yaml. To start without a tree, set --capacity: the simulator proposes a tree of the kind
that --quotas selects, and --print-tree prints it for editing.`

const examples = `  # How long would jobs wait with 600 GPUs, each tenant guaranteed a share in proportion to its use?
  kube-queue-simulator --trace jobs.csv --capacity nvidia.com/gpu=600

  # Compare the policies and draw a plot
  kube-queue-simulator --trace jobs.csv --capacity nvidia.com/gpu=600 --policy RoundRobin,Block,Priority --plot waits.svg

  # Propose a tree, try it, apply it
  kube-queue-simulator --trace jobs.csv --capacity nvidia.com/gpu=600 --print-tree > tree.yaml
  kube-queue-simulator --trace jobs.csv --tree tree.yaml
  kube-queue-simulator check tree.yaml
  kubectl apply -f tree.yaml

  # Jobs save checkpoints, and need 30 s to stop when they are evicted
  kube-queue-simulator --trace jobs.csv --tree tree.yaml --victims resume --stops-in 30s

  # Try the tree of the cluster
  kubectl -n kube-system get elasticquotatree -o yaml | kube-queue-simulator --trace jobs.csv --tree -

  # Replay a log of the Parallel Workloads Archive, with one tenant per group
  kube-queue-simulator --trace CTC-SP2.swf.gz --tenant group --capacity cpu=430`
