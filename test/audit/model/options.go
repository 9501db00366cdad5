package model

import (
	"fmt"
	"math/big"
	"strings"
	"time"
)

// Options say what is known about the cluster beside its log.
type Options struct {
	// Controller and Extensions are the users of the two programs.
	Controller, Extensions string
	// Oversell is the rate by which limits are multiplied, a decimal; empty: 1.
	Oversell string
	// Grace is how long a unit may hold quota after its job's end; nil: 10 s.
	Grace *time.Duration
	// ResourceQuota: the cluster's quota is its ResourceQuotas, not a tree.
	ResourceQuota bool
	// TreeLag is how long after a change of the tree, of a ResourceQuota or of a
	// Queue the one before may still justify what is done; nil: 2 s.
	TreeLag *time.Duration
	// PodLag is how long after its creation a pod of somebody else need not be
	// counted yet in a ResourceQuota; nil: 2 s.
	PodLag *time.Duration
	// SuspendLag is how long after a job was suspended again its operator may
	// still create a pod of it; nil: 1 s.
	SuspendLag *time.Duration
	// Until is the time up to which the log is known to be complete, when that is
	// later than its last entry.
	Until time.Time
	// Skip names checks that are left out.
	Skip []string

	OversellRate *big.Rat
}

// Users of the two programs, unless the options say otherwise.
const (
	DefaultController = "system:serviceaccount:kube-queue:kube-queue-controller"
	DefaultExtensions = "system:serviceaccount:kube-queue:job-extensions"
)

// Complete fills in what is left out.
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
	}{{&o.Grace, 10 * time.Second}, {&o.TreeLag, 2 * time.Second}, {&o.PodLag, 2 * time.Second}, {&o.SuspendLag, time.Second}} {
		if *d.to == nil {
			*d.to = &d.value
		}
	}
	if o.Oversell == "" {
		o.Oversell = "1"
	}
	rate, ok := new(big.Rat).SetString(o.Oversell)
	if !ok || rate.Sign() < 0 || strings.ContainsAny(o.Oversell, "/eE") {
		return nil, fmt.Errorf("oversell rate %q is no decimal number", o.Oversell)
	}
	o.OversellRate = rate
	return &o, nil
}

// Program reports whether a write was made by one of the two programs.
func (o *Options) Program(w *Write) bool { return w.User == o.Controller || w.User == o.Extensions }
