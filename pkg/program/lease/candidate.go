// Package lease decides which one of a program's replicas works: the one that holds the
// lease.
//
// Invariants: the lease is released only after the work that it guards has stopped; a
// program that loses its lease, or was frozen for longer than it holds, is gone at once,
// and none of its writes reaches the API server later than a new leader may start.
package lease

import (
	"os"

	"k8s.io/client-go/rest"
)

// Candidate is a process that may work once it holds the lease.
type Candidate struct {
	// Name of the program and of the lease, and the Namespace of the lease.
	Name, Namespace string
	// Identity reports this process from every other.
	Identity string
	// Config to reach the API server with.
	Config *rest.Config
	// Health is reported how it stands.
	Health Health
}

// Health is reported how a replica stands.
type Health interface {
	// Leads is called when the work begins and when it has ended.
	Leads(bool)
	// StandsBy is called when another was seen to lead.
	StandsBy()
}

// Lease of a program, as one process of it sees it.
type Lease struct {
	Candidate
	opts Options
	term *term
	// exit ends the process when the lease is lost.
	exit func(code int)
}

// exitLost is the status of a program that has lost its lease.
const exitLost = 1

// New makes what a candidate leads by.
func New(opts Options, candidate Candidate) *Lease {
	return &Lease{Candidate: candidate, opts: opts, term: newTerm(opts.lease.actFor()), exit: os.Exit}
}

// Guard bounds every write by the config in time, and lets none out once the lease is
// lost.
func (l *Lease) Guard(config *rest.Config) {
	config.Wrap(writeDeadline)
	config.Dial = l.term.dial
}
