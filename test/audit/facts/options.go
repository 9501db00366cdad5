package facts

import (
	"fmt"
	"math/big"
	"strings"
	"time"
)

// Options describe what the log does not contain.
type Options struct {
	// Oversell is the factor for limits, a decimal number. Empty means 1.
	Oversell string
	// Grace is how long a unit may hold quota after its job has ended. The default is 10 s.
	Grace *time.Duration
	// ResourceQuota: quota is given by ResourceQuotas instead of a tree.
	ResourceQuota bool
	// PodLag is how long after its creation a pod may be missing in the usage of a ResourceQuota, if it
	// has no unit, and of a quota tree. The default is 2 s.
	PodLag *time.Duration
	// StatusInterval is the shortest time between two writes of the status of a Queue or of the tree. The default
	// is 5 s.
	StatusInterval *time.Duration

	OversellRate *big.Rat
}

const (
	// TreeLag is how long after a change of the tree or of a ResourceQuota the previous version may still
	// justify a decision.
	TreeLag = 2 * time.Second
	// SuspendLag is how long after a job was suspended again its operator may still create pods.
	SuspendLag = time.Second
)

// User names of the two programs.
const (
	Controller = "system:serviceaccount:kube-queue:kube-queue-controller"
	Extensions = "system:serviceaccount:kube-queue:job-extensions"
)

// Complete returns the options with defaults.
func (o Options) Complete() (*Options, error) {
	for _, d := range []struct {
		to    **time.Duration
		value time.Duration
	}{{&o.Grace, 10 * time.Second}, {&o.PodLag, 2 * time.Second}, {&o.StatusInterval, 5 * time.Second}} {
		if *d.to == nil {
			*d.to = &d.value
		}
	}
	if o.Oversell == "" {
		o.Oversell = "1"
	}
	rate, ok := new(big.Rat).SetString(o.Oversell)
	if !ok || rate.Sign() < 0 || strings.ContainsAny(o.Oversell, "/eE") {
		return nil, fmt.Errorf("oversell rate %q is not a decimal number", o.Oversell)
	}
	o.OversellRate = rate
	return &o, nil
}

// ByProgram reports whether the write was made by one of the two programs.
func (w *Write) ByProgram() bool { return w.User == Controller || w.User == Extensions }
