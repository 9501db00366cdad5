package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/resources"
	"kube-queue.dev/kube-queue/pkg/scheduler"
	"kube-queue.dev/kube-queue/pkg/simulator"
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
	reclaim, preemptWithinQueue             bool
	minRunTime, stopsIn, reserveAfter       time.Duration
	search                                  []time.Duration
	searchMin                               []int
	victims                                 string
	output, plot, resource, progress        string

	// The parsed values of the settings above.
	limits   map[string]resource.Quantity
	oversell resources.Rate
	replay   []*queue.Policy
	// isSet reports whether a flag was set.
	isSet func(flag string) bool
}

// choice is a flag that accepts a fixed set of values.
type choice struct {
	flag  string
	value *string
	known []string
}

// Flags that are referenced in more than one place.
const (
	flagReclaim    = "reclaim"
	flagPreempt    = "preempt-within-queue"
	flagMinRunTime = "min-run-time"
	flagVictims    = "victims"
	flagStopsIn    = "stops-in"
	flagReserve    = "reserve-after"
	flagSearch     = "search-reserve-after"
	flagSearchMin  = "search-min"
)

// These are the defaults of kube-queue-controller.
const (
	reclaimDefault    = true
	pauseDefault      = true
	minRunTimeDefault = scheduler.DefaultMinRunTime
)

var allVictims = []simulator.Victims{simulator.Restart, simulator.Resume}

func (o *options) choices() []choice {
	return []choice{
		{"trace-format", &o.traceFormat, []string{string(trace.CSV), string(trace.SWF)}},
		{"tenant", &o.tenant, texts(trace.Fields)},
		{"quotas", &o.quotas, texts(quotatree.Kinds)},
		{flagVictims, &o.victims, texts(allVictims)},
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

// addFlags adds the flags. The word in backquotes is the placeholder in the help.
func (o *options) addFlags(fs *pflag.FlagSet) {
	o.isSet = fs.Changed
	fs.StringVar(&o.trace, "trace", "", "`FILE` with the trace to replay: CSV or Standard Workload Format, optionally compressed with gzip; - for the standard input.")
	fs.StringVar(&o.traceFormat, "trace-format", "", "`FORMAT` of the trace: csv or swf. Unset: derived from the file name, csv if the name has neither extension.")
	fs.StringVar(&o.gpuResource, "gpu-resource", "nvidia.com/gpu", "`RESOURCE` that the column num_gpus counts.")
	fs.StringVar(&o.tenant, "tenant", string(trace.User), "`FIELD` that identifies the tenant in the Standard Workload Format: user, group, queue or partition.")
	fs.StringVar(&o.tree, "tree", "", "`FILE` with the manifest of the ElasticQuotaTree to try; - for the standard input.")
	fs.StringVar(&o.capacity, "capacity", "", "Capacity of the cluster as `RESOURCE=AMOUNT,...`, to propose a tree. Use it instead of --tree.")
	fs.StringVar(&o.quotas, "quotas", string(quotatree.Elastic), "`KIND` of tree to propose for --capacity. single: one quota for all tenants; elastic: one quota per tenant, with a min in proportion to its jobs' resource-hours and the full capacity as max; hard: the same with max = min.")
	fs.BoolVar(&o.printTree, "print-tree", false, "Print the manifest of the tree and exit. Replays the trace only for --"+flagSearchMin+".")
	fs.StringSliceVar(&o.policies, "policy", []string{queue.RoundRobin.Name}, "`POLICY,...` of the queues: "+strings.Join(queue.PolicyNames(), ", ")+". The trace is replayed once per policy.")
	fs.BoolVar(&o.pauseBorrowing, "pause-borrowing", pauseDefault, "Without reclaim: pause borrowing of a resource while a job waits for its guaranteed quota; same as the flag of kube-queue-controller.")
	fs.StringVar(&o.oversellRate, "oversell-rate", "1.0", "`DECIMAL` that multiplies every max; same as the flag of kube-queue-controller.")
	fs.BoolVar(&o.reclaim, flagReclaim, reclaimDefault, "Evict jobs of quotas above their min for jobs within the min of their own quota; same as the flag of kube-queue-controller.")
	fs.BoolVar(&o.preemptWithinQueue, flagPreempt, false, "Evict jobs for jobs with higher priority in the same queue; same as withinQueue: LowerPriority in each Queue.")
	fs.DurationVar(&o.reserveAfter, flagReserve, 0, "How long a job waits until quota is reserved for it; same as reserveAfter in each Queue. 0: never.")
	fs.DurationSliceVar(&o.search, flagSearch, nil, "`DURATION,...` to try as --reserve-after on the first half of the jobs. All jobs are then replayed with the one that has the smallest product of mean and longest wait. Prints one table, with the waits of the second half.")
	fs.IntSliceVar(&o.searchMin, flagSearchMin, nil, "`PERCENT,...` of each min of the tree to try in the same way, with each --"+flagSearch+" if both are set. With --print-tree, prints the tree with the best one.")
	fs.DurationVar(&o.minRunTime, flagMinRunTime, minRunTimeDefault, "How long after its release a job cannot be evicted; same as minRunTime in each Queue.")
	fs.StringVar(&o.victims, flagVictims, string(simulator.Restart), "`WHAT` evicted jobs do when they are released again. restart: start from the beginning; resume: continue where they stopped.")
	fs.DurationVar(&o.stopsIn, flagStopsIn, 0, "How long evicted jobs take to stop, while they still use their quota.")
	fs.StringVarP(&o.output, "output", "o", outputTable, "Output `FORMAT`: table, csv (one row per policy and group of jobs) or json (all results).")
	fs.StringVar(&o.plot, "plot", "", "`FILE` for a plot (SVG) of the used quota and the waiting jobs over time, and of the distribution of waiting times.")
	fs.StringVar(&o.resource, "resource", "", "`RESOURCE` for grouping jobs by size, and for the plot. Unset: the first resource of the trace that the root of the tree limits.")
	fs.StringVar(&o.progress, "progress", progressAuto, "`WHEN` to show progress on stderr: auto (on a terminal), always or never.")
}

// addCompletion enables shell completion of values. It ignores errors: they mean that a flag does not exist, which
// the tests detect.
func (o *options) addCompletion(cmd *cobra.Command) {
	for _, c := range o.choices() {
		_ = cmd.RegisterFlagCompletionFunc(c.flag, cobra.FixedCompletions(c.known, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(queue.PolicyNames(), cobra.ShellCompDirectiveNoFileComp))
	for _, flag := range []string{"capacity", "gpu-resource", "oversell-rate", flagMinRunTime, flagStopsIn, flagReserve, flagSearch, flagSearchMin, "resource"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	_ = cmd.MarkFlagFilename("plot", "svg")
}

// complete checks everything that can be checked without a file.
func (o *options) complete() error {
	for _, c := range o.choices() {
		// Only the trace format can be empty: it is then derived from the file name.
		if !slices.Contains(c.known, *c.value) && (c.flag != "trace-format" || *c.value != "") {
			return fmt.Errorf("--%s: unknown value %q; known values: %s", c.flag, *c.value, strings.Join(c.known, ", "))
		}
	}
	switch {
	case o.trace == "":
		return errors.New("--trace is required: set it to the file with the jobs to replay")
	case o.tree == "" && o.capacity == "":
		return errors.New("--tree or --capacity is required: set --tree to the file with the quota tree to try, or --capacity, for example --capacity nvidia.com/gpu=600, to propose a tree")
	case o.tree != "" && o.capacity != "":
		return errors.New("--tree and --capacity are mutually exclusive: a tree contains its own limits")
	case o.tree == "-" && o.trace == "-":
		return errors.New("--trace and --tree must not both read the standard input")
	case o.gpuResource == "":
		return errors.New("--gpu-resource must not be empty; set it, for example to nvidia.com/gpu")
	}
	if err := o.checkEvictions(); err != nil {
		return err
	}
	var err error
	if o.oversell, err = resources.ParseRate(o.oversellRate); err != nil {
		return fmt.Errorf("--oversell-rate: %w", err)
	}
	if o.replay, err = parsePolicies(o.policies); err != nil {
		return fmt.Errorf("--policy: %w", err)
	}
	if o.capacity != "" {
		if o.limits, err = parseCapacity(o.capacity); err != nil {
			return fmt.Errorf("--capacity: %w", err)
		}
	}
	return o.checkSearch()
}

// checkEvictions checks the flags about evictions.
func (o *options) checkEvictions() error {
	for _, flag := range []string{flagMinRunTime, flagVictims, flagStopsIn} {
		if o.isSet(flag) && !o.reclaim && !o.preemptWithinQueue {
			return fmt.Errorf("--%s has no effect, because no job is evicted; set --%s or --%s, or remove it", flag, flagReclaim, flagPreempt)
		}
	}
	switch {
	case o.minRunTime < 0:
		return fmt.Errorf("--%s must not be negative", flagMinRunTime)
	case o.stopsIn < 0:
		return fmt.Errorf("--%s must not be negative", flagStopsIn)
	case o.reserveAfter < 0:
		return fmt.Errorf("--%s must not be negative", flagReserve)
	}
	return nil
}

// parsePolicies parses the case-insensitive names and removes duplicates.
func parsePolicies(names []string) ([]*queue.Policy, error) {
	var list []*queue.Policy
	for _, name := range names {
		at := slices.IndexFunc(queue.Policies(), func(p *queue.Policy) bool { return strings.EqualFold(p.Name, strings.TrimSpace(name)) })
		if at < 0 {
			return nil, fmt.Errorf("unknown policy %q; known policies: %s", name, strings.Join(queue.PolicyNames(), ", "))
		}
		if policy := queue.Policies()[at]; !slices.Contains(list, policy) {
			list = append(list, policy)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no policy given; known policies: %s", strings.Join(queue.PolicyNames(), ", "))
	}
	return list, nil
}

func parseCapacity(text string) (map[string]resource.Quantity, error) {
	limits := map[string]resource.Quantity{}
	for _, entry := range strings.Split(text, ",") {
		name, amount, ok := strings.Cut(entry, "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" {
			return nil, fmt.Errorf("%q must be RESOURCE=AMOUNT, for example nvidia.com/gpu=600", entry)
		}
		if _, twice := limits[name]; twice {
			return nil, fmt.Errorf("%s is given twice; remove one entry", name)
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
