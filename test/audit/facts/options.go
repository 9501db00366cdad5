package facts

import (
	"fmt"
	"math/big"
	"strings"
	"time"
)

// Options describe what the log does not contain.
type Options struct {
	// Controller and Extensions are the user names of the two programs.
	Controller, Extensions string
	// Oversell is the factor for limits, a decimal number. Empty means 1.
	Oversell string
	// Grace is how long a unit may hold quota after its job has ended. The default is 10 s.
	Grace *time.Duration
	// ResourceQuota: quota is given by ResourceQuotas instead of a tree.
	ResourceQuota bool
	// TreeLag is how long after a change of the tree, of a ResourceQuota or of a Queue the previous
	// version may still justify a decision. The default is 2 s.
	TreeLag *time.Duration
	// PodLag is how long after its creation a pod may be missing in the usage of a ResourceQuota, if it
	// has no unit, and of a quota tree. The default is 2 s.
	PodLag *time.Duration
	// SuspendLag is how long after a job was suspended again its operator may still create pods.
	// The default is 1 s.
	SuspendLag *time.Duration
	// StatusInterval is the shortest time between two writes of the status of a Queue or of the tree. The default
	// is 5 s.
	StatusInterval *time.Duration
	// Growth: a node of the quota tree that is above its max because of pods shows it by the condition
	// OverQuota.
	Growth bool
	// Until is the time up to which the log is complete, if that is later than its last entry.
	Until time.Time
	// Skip lists the names of checks to skip.
	Skip []string

	OversellRate *big.Rat
}

// Default user names of the two programs.
const (
	DefaultController = "system:serviceaccount:kube-queue:kube-queue-controller"
	DefaultExtensions = "system:serviceaccount:kube-queue:job-extensions"
)

// Complete returns the options with defaults.
func (o Options) Complete() (*Options, error) {
	if o.Controller == "" {
		o.Controller = DefaultController
	}
	if o.Extensions == "" {
		o.Extensions = DefaultExtensions
	}
	for _, d := range []struct {
		to    **time.Duration
		value time.Duration
	}{{&o.Grace, 10 * time.Second}, {&o.TreeLag, 2 * time.Second}, {&o.PodLag, 2 * time.Second}, {&o.SuspendLag, time.Second}, {&o.StatusInterval, 5 * time.Second}} {
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

// Program reports whether a write was made by one of the two programs.
func (o *Options) Program(w *Write) bool { return w.User == o.Controller || w.User == o.Extensions }
