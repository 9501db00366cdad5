package controller

import (
	"time"

	"kube-queue.dev/kube-queue/pkg/scheduler"
)

const (
	// forgetInterval is how often unused names and groups are forgotten.
	forgetInterval = 5 * time.Minute
	// forgetNames is how many new resource names, beyond one per unit, make this happen earlier. Forgetting takes time
	// proportional to the number of units and pods, so a few names must not trigger it.
	forgetNames = 4096
)

// forgetting forgets unused resource names and groups. Otherwise units that keep using new names would fill the memory.
type forgetting struct {
	// at is when to forget next; zero before the first call of run.
	at time.Time
	// kept is the number of names that were in use the last time.
	kept int
}

// run forgets if it is due, and returns when to call it again. Call it after decisions, when no input is half
// processed: all IDs in use must be in the core or in the sequence of new units.
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
