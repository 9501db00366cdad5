// Package lease decides which replica of a program works: the one that holds the lease.
//
// Invariants: the lease is released only after the work that it guards has stopped. A program that loses its lease, or
// was frozen for longer than the lease lasts, exits immediately. None of its writes reaches the API server once a new
// leader may start.
package lease

import (
	"os"

	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/pkg/program/serving"
)

// Candidate is a process that works while it holds the lease.
type Candidate struct {
	// Name is the name of the program and of the lease. Namespace is the namespace of the lease.
	Name, Namespace string
	// Identity is unique to this process.
	Identity string
	// Labels are added to the lease while this process holds it.
	Labels map[string]string
	// Config is the configuration of the connection to the API server.
	Config *rest.Config
	// Health receives the state of the replica.
	Health *serving.Health
}

// Lease is the lease of a program as one of its processes sees it.
type Lease struct {
	Candidate
	opts Options
	term *term
	// exit ends the process when the lease is lost.
	exit func(code int)
}

// exitLost is the exit status of a program that has lost its lease.
const exitLost = 1

// New returns the lease for a candidate.
func New(opts Options, candidate Candidate) *Lease {
	return &Lease{Candidate: candidate, opts: opts, term: newTerm(opts.lease.actFor()), exit: os.Exit}
}

// Guard adds a deadline to every write that uses the config, and blocks all writes once the
// lease is lost.
func (l *Lease) Guard(config *rest.Config) {
	config.Wrap(writeDeadline)
	config.Dial = l.term.dial
}
