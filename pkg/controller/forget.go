package controller

import (
	"time"

	"kube-queue.dev/kube-queue/pkg/scheduler"
)

const (
	// forgetInterval is how often what nothing uses any more is forgotten.
	forgetInterval = 5 * time.Minute
	// forgetNames is the number of new names of resources after which this is done earlier, in addition to
	// one for each unit. It takes time proportional to the number of units and pods, so it must not be done
	// for a few names.
	forgetNames = 4096
)

// forgetting forgets the names of resources and the groups that nothing uses any more. Otherwise units
// with ever new names would fill the memory.
type forgetting struct {
	// at is the time of the next time; zero before the first call of run.
	at time.Time
	// kept is the number of names that were in use the last time.
	kept int
}

// run forgets if it is time to, and returns when to call it again. All IDs in use must be in the core or
// in the sequence of new units: it is called after decisions, when no input is half processed.
func (f *forgetting) run(l *loop) time.Time {
	switch {
	case !l.listed: // the source stores IDs that the core does not know yet
		return time.Time{}
	case f.at.IsZero():
		f.at = l.now.Add(forgetInterval)
	case !l.now.Before(f.at), l.names.Len() > 2*f.kept+forgetNames+l.core.Units():
		f.at = l.now.Add(forgetInterval)
		f.forget(l)
	}
	return f.at
}

func (f *forgetting) forget(l *loop) {
	used, known := l.core.Uses()
	if !known {
		return
	}
	l.sequence.Delayed(func(u scheduler.Unit) { used.AddVector(u.Demand.Requests) })
	l.core.Forget(used)
	l.names.Forget(used)
	f.kept = l.names.Len()
	l.measures.ResourceNames(f.kept)
}
