package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/simulator/quotatree"
	"kube-queue.dev/kube-queue/pkg/simulator/trace"
)

// Values of --output and --progress.
const (
	outputTable = "table"
	outputCSV   = "csv"
	outputJSON  = "json"

	progressAuto   = "auto"
	progressAlways = "always"
	progressNever  = "never"
)

type options struct {
	trace, traceFormat, gpuResource, tenant string
	tree, capacity, quotas                  string
	printTree                               bool
	policies                                []string
	pauseBorrowing                          bool
	oversellRate                            string
	output, plot, resource, progress        string

	// What the above come to.
	limits   map[string]resource.Quantity
	oversell resources.Rate
	play     []queue.Policy
}

// choice is a flag that has one of a few values.
type choice struct {
	flag  string
	value *string
	known []string
}

var policies = []queue.Policy{queue.RoundRobin, queue.Block, queue.Priority}

func (o *options) choices() []choice {
	return []choice{
		{"trace-format", &o.traceFormat, []string{string(trace.CSV), string(trace.SWF)}},
		{"tenant", &o.tenant, texts(trace.Fields)},
		{"quotas", &o.quotas, texts(quotatree.Kinds)},
		{"output", &o.output, []string{outputTable, outputCSV, outputJSON}},
		{"progress", &o.progress, []string{progressAuto, progressAlways, progressNever}},
	}
}

func texts[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// addFlags: what stands between backquotes is the placeholder in the help.
func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.trace, "trace", "", "`FILE` with the trace to play, CSV or Standard Workload Format, also compressed with gzip; - for the standard input.")
	fs.StringVar(&o.traceFormat, "trace-format", "", "`FORMAT` of the trace: csv or swf. Unset: by the name of the file, csv if that does not tell.")
	fs.StringVar(&o.gpuResource, "gpu-resource", "nvidia.com/gpu", "`RESOURCE` that the column num_gpus counts.")
	fs.StringVar(&o.tenant, "tenant", string(trace.User), "`FIELD` that tells tenants apart in the Standard Workload Format: user, group, queue or partition.")
	fs.StringVar(&o.tree, "tree", "", "`FILE` with the manifest of the ElasticQuotaTree to try; - for the standard input.")
	fs.StringVar(&o.capacity, "capacity", "", "Instead of --tree: what there is, as `RESOURCE=AMOUNT,...`, for a tree to be proposed from the trace.")
	fs.StringVar(&o.quotas, "quotas", string(quotatree.Elastic), "`KIND` of tree to propose for --capacity. single: one quota for all tenants; elastic: one for each, its min in proportion to the resource-hours of its jobs, its max the whole; hard: the same with max = min.")
	fs.BoolVar(&o.printTree, "print-tree", false, "Print the tree as a manifest and play nothing.")
	fs.StringSliceVar(&o.policies, "policy", []string{string(queue.RoundRobin)}, "`POLICY,...` of the queues, each of which is played: RoundRobin, Block, Priority.")
	fs.BoolVar(&o.pauseBorrowing, "pause-borrowing", false, "As of kube-queue-controller: while a job waits for what its quota's min guarantees, nobody borrows more of that.")
	fs.StringVar(&o.oversellRate, "oversell-rate", "1.0", "As of kube-queue-controller: `DECIMAL` that every max is multiplied with.")
	fs.StringVarP(&o.output, "output", "o", outputTable, "`FORMAT` to print: table, csv (one row for each policy and group of jobs) or json (everything).")
	fs.StringVar(&o.plot, "plot", "", "`FILE` to draw a picture into (SVG): use and waiting jobs in time, and how waits are distributed.")
	fs.StringVar(&o.resource, "resource", "", "`RESOURCE` by which jobs are sorted by size and whose use is drawn. Unset: the first of the trace that the root of the tree limits.")
	fs.StringVar(&o.progress, "progress", progressAuto, "`WHEN` to tell on stderr how far it is: auto (on a terminal), always or never.")
}

// addCompletion lets shells complete values. A flag that is not there is a slip in
// this file, which the tests find.
func (o *options) addCompletion(cmd *cobra.Command) {
	for _, c := range o.choices() {
		_ = cmd.RegisterFlagCompletionFunc(c.flag, cobra.FixedCompletions(c.known, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(texts(policies), cobra.ShellCompDirectiveNoFileComp))
	for _, flag := range []string{"capacity", "gpu-resource", "oversell-rate", "resource"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	_ = cmd.MarkFlagFilename("plot", "svg")
}

// complete checks everything that can be checked without a file.
func (o *options) complete() error {
	for _, c := range o.choices() {
		// Only the format may be left to be found out.
		if !slices.Contains(c.known, *c.value) && (c.flag != "trace-format" || *c.value != "") {
			return fmt.Errorf("--%s: unknown value %q; known are: %s", c.flag, *c.value, strings.Join(c.known, ", "))
		}
	}
	switch {
	case o.trace == "":
		return errors.New("--trace is missing: the file with the jobs to play")
	case o.tree == "" && o.capacity == "":
		return errors.New("--tree or --capacity is missing: the quota tree to try, or what there is, as --capacity nvidia.com/gpu=600, for a tree to be proposed")
	case o.tree != "" && o.capacity != "":
		return errors.New("--tree and --capacity exclude each other: a tree has its limits in it")
	case o.tree == "-" && o.trace == "-":
		return errors.New("--trace and --tree cannot both be the standard input")
	case o.gpuResource == "":
		return errors.New("--gpu-resource must not be empty")
	}
	var err error
	if o.oversell, err = resources.ParseRate(o.oversellRate); err != nil {
		return fmt.Errorf("--oversell-rate: %w", err)
	}
	if o.play, err = parsePolicies(o.policies); err != nil {
		return fmt.Errorf("--policy: %w", err)
	}
	if o.capacity != "" {
		if o.limits, err = parseCapacity(o.capacity); err != nil {
			return fmt.Errorf("--capacity: %w", err)
		}
	}
	return nil
}

// parsePolicies takes the names in any case, each once.
func parsePolicies(names []string) ([]queue.Policy, error) {
	var list []queue.Policy
	for _, name := range names {
		at := slices.IndexFunc(policies, func(p queue.Policy) bool { return strings.EqualFold(string(p), strings.TrimSpace(name)) })
		if at < 0 {
			return nil, fmt.Errorf("unknown policy %q; known are: %s", name, strings.Join(texts(policies), ", "))
		}
		if !slices.Contains(list, policies[at]) {
			list = append(list, policies[at])
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no policy; known are: %s", strings.Join(texts(policies), ", "))
	}
	return list, nil
}

func parseCapacity(text string) (map[string]resource.Quantity, error) {
	limits := map[string]resource.Quantity{}
	for _, entry := range strings.Split(text, ",") {
		name, amount, ok := strings.Cut(entry, "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not a resource and an amount, as nvidia.com/gpu=600", entry)
		}
		if _, twice := limits[name]; twice {
			return nil, fmt.Errorf("%s stands there twice", name)
		}
		q, err := resources.Parse(amount)
		if err == nil {
			_, err = resources.LimitValue(name, q)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		limits[name] = q
	}
	return limits, nil
}
