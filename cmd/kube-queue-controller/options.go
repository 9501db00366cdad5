package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Environment variables by which older kube-queue releases were set, and their
// known values.
const (
	envBackend           = "QueueGroupPlugin"
	envStrictPriority    = "StrictPriority"
	envStrictConsistency = "StrictConsistency"

	backendElasticQuota = "elasticquota"
)

var knownBackends = []string{backendElasticQuota}

type options struct {
	oversellRate    string
	pauseBorrowing  bool
	workers         int
	checkInvariants bool

	// What the above and the environment come to.
	oversell resources.Rate
	policy   queue.Policy
	backend  string
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.oversellRate, "oversell-rate", "1.0",
		"Decimal that every limit of the quota, "+`"kube-queue/max-jobs"`+" included, is multiplied with.")
	fs.BoolVar(&o.pauseBorrowing, "pause-borrowing", false,
		"While a unit waits for what its quota's min guarantees, and has no room because others have borrowed it, let nobody borrow more of that. For clusters where nothing is taken back from who has borrowed.")
	fs.IntVar(&o.workers, "workers", 32, "Status writes under way at most.")
	fs.BoolVar(&o.checkInvariants, "check-invariants", false,
		"Prove after every event that used quota is the sum of what was charged, and end when it is not. For tests: it takes time proportional to the number of units.")
}

// complete reads the environment through lookup, and checks everything.
func (o *options) complete(lookup func(string) (string, bool)) error {
	var err error
	if o.oversell, err = resources.ParseRate(o.oversellRate); err != nil {
		return fmt.Errorf("--oversell-rate: %w", err)
	}
	if o.workers < 1 {
		return fmt.Errorf("--workers: %d is too few; at least 1 is needed", o.workers)
	}
	if o.backend, err = backend(lookup); err != nil {
		return err
	}
	o.policy, err = policy(lookup)
	return err
}

func backend(lookup func(string) (string, bool)) (string, error) {
	value, _ := lookup(envBackend)
	if value == "" {
		return backendElasticQuota, nil
	}
	for _, known := range knownBackends {
		if strings.EqualFold(value, known) {
			return known, nil
		}
	}
	return "", fmt.Errorf("environment variable %s: unknown quota backend %q; known are: %s", envBackend, value, strings.Join(knownBackends, ", "))
}

// policy by the two historical variables: both together mean Block.
func policy(lookup func(string) (string, bool)) (queue.Policy, error) {
	strictPriority, err := boolean(lookup, envStrictPriority)
	if err != nil {
		return "", err
	}
	strictConsistency, err := boolean(lookup, envStrictConsistency)
	if err != nil {
		return "", err
	}
	switch {
	case strictPriority:
		return queue.Block, nil
	case strictConsistency:
		return queue.Priority, nil
	default:
		return queue.RoundRobin, nil
	}
}

func boolean(lookup func(string) (string, bool), name string) (bool, error) {
	value, _ := lookup(name)
	if value == "" {
		return false, nil
	}
	set, err := strconv.ParseBool(strings.ToLower(value))
	if err != nil {
		return false, fmt.Errorf("environment variable %s: unknown value %q; known are: true, false", name, value)
	}
	return set, nil
}

func (o *options) inForce() []any {
	return []any{"quotaBackend", o.backend, "policy", o.policy, "oversellRate", o.oversell.String(), "pauseBorrowing", o.pauseBorrowing}
}
