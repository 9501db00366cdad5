package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/pkg/queue"
	quotasource "kube-queue.dev/kube-queue/pkg/quota/resourcequota/source"
	"kube-queue.dev/kube-queue/pkg/quota/source"
	"kube-queue.dev/kube-queue/pkg/quota/tree"
	treesource "kube-queue.dev/kube-queue/pkg/quota/tree/source"
	"kube-queue.dev/kube-queue/pkg/resources"
)

// Environment variables by which older kube-queue releases were set.
const (
	envBackend           = "QueueGroupPlugin"
	envStrictPriority    = "StrictPriority"
	envStrictConsistency = "StrictConsistency"
)

// backend is a quota backend by the name that QueueGroupPlugin takes.
type backend struct {
	name   string
	source func(*options) source.Source
	// idle are the flags that have no effect with it.
	idle []string
}

// backends that there are, the default first.
func backends() []backend {
	return []backend{
		{"elasticquota", func(o *options) source.Source {
			return treesource.New(tree.Options{Oversell: o.oversell, PauseBorrowing: o.pauseBorrowing})
		}, nil},
		// The API server keeps to the ResourceQuotas as they are, and they guarantee
		// nothing that could be lent.
		{"resourcequota", func(*options) source.Source { return quotasource.New() }, []string{flagOversell, flagPauseBorrowing}},
	}
}

const (
	flagOversell       = "oversell-rate"
	flagPauseBorrowing = "pause-borrowing"
)

type options struct {
	oversellRate    string
	pauseBorrowing  bool
	workers         int
	checkInvariants bool

	// What the above and the environment come to.
	oversell resources.Rate
	policy   queue.Policy
	backend  backend
	// withoutEffect are flags that are set and mean nothing to the backend.
	withoutEffect []string
	flags         *pflag.FlagSet
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	o.flags = fs
	fs.StringVar(&o.oversellRate, flagOversell, "1.0",
		"Decimal that every limit of the quota, "+`"kube-queue/max-jobs"`+" included, is multiplied with.")
	fs.BoolVar(&o.pauseBorrowing, flagPauseBorrowing, false,
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
	if o.backend, err = backendOf(lookup); err != nil {
		return err
	}
	for _, flag := range o.backend.idle {
		if o.flags != nil && o.flags.Changed(flag) {
			o.withoutEffect = append(o.withoutEffect, "--"+flag)
		}
	}
	o.policy, err = policy(lookup)
	return err
}

func backendOf(lookup func(string) (string, bool)) (backend, error) {
	value, _ := lookup(envBackend)
	var known []string
	for _, b := range backends() {
		if value == "" || strings.EqualFold(value, b.name) {
			return b, nil
		}
		known = append(known, b.name)
	}
	return backend{}, fmt.Errorf("environment variable %s: unknown quota backend %q; known are: %s", envBackend, value, strings.Join(known, ", "))
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
	shown := []any{"quotaBackend", o.backend.name, "policy", o.policy}
	if len(o.backend.idle) == 0 {
		shown = append(shown, "oversellRate", o.oversell.String(), "pauseBorrowing", o.pauseBorrowing)
	}
	if len(o.withoutEffect) > 0 {
		shown = append(shown, "withoutEffect", strings.Join(o.withoutEffect, " "))
	}
	return shown
}
