package scheduler

import (
	"strings"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// Phase is how far a unit got, as far as quota is concerned.
type Phase int8

// The phases. A unit is charged from Reserved to Running.
const (
	Waiting Phase = iota
	Reserved
	Dequeued
	Running
	Ended
)

func (p Phase) holdsQuota() bool { return p == Reserved || p == Dequeued || p == Running }

// Unit is what the core is shown of a QueueUnit.
type Unit struct {
	// Key is namespace/name.
	Key string
	Facts
	// Partial: what the unit asks for and where it stands could not be read in
	// full. What is known of that from before stays in force.
	Partial bool

	// DequeuedAt is when the unit was last released; zero when it never was.
	DequeuedAt time.Time
	// RequeueAt, when set, is when a waiting unit stands in line again.
	RequeueAt time.Time
	// Reason that the unit shows its users now.
	Reason wellknown.Reason
}

// Facts of a unit are what the core keeps of it as it is shown. It keeps a million of
// them, so points in time are not here: a time.Time is large, and kept in a shorter form.
type Facts struct {
	UID string
	// Owner is the UID of the job whose pods use what the unit holds; empty where
	// nobody has said. Like Demand, it need not be known of a unit that has ended.
	Owner string
	// QuotaName picks among the groups of the namespace; empty: the first.
	QuotaName string
	// Quota is the path of the group whose quota it holds, or held last, or for which it
	// was instructed to wait, as the unit says itself.
	Quota string
	// Version grows with every write of the unit.
	Version uint64
	// Submitted orders units of one priority: microseconds since 1970.
	Submitted int64
	Demand    quota.Demand
	// Held, when set, keeps the unit from being tried, and says why.
	Held *quota.Refusal
	// MaxTime is for how long it may run once it is released; 0: as long as it takes.
	MaxTime  time.Duration
	Priority int32
	Attempts int32
	Phase    Phase

	// Inactive: the unit must not run, so that it is evicted when it holds quota.
	Inactive bool
	// HeldReported is set when somebody else reports the user why it is held.
	HeldReported bool
	// Evicted: it has been decided, and written, that a unit that holds quota is to
	// give it back. It holds it until the job has stopped.
	Evicted bool
	// Over: the job has ended, and its unit holds quota only until what the job leaves
	// behind is gone. There is nothing to evict.
	Over bool
	// Stopped, when set, says that the job of a unit that holds quota has been
	// stopped: the unit is to be put back in line, and its quota is free with that.
	Stopped bool
}

// Namespace of the unit.
func (u *Unit) Namespace() string { return namespaceOf(u.Key) }

func namespaceOf(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}

// Event is something that happened.
type Event interface{ apply(*Scheduler, time.Time) }

// UnitChanged: a unit is there, or has changed.
type UnitChanged struct{ Unit Unit }

// UnitGone: a unit was deleted.
type UnitGone struct{ Key, UID string }

// QuotaChanged: limits changed. Everything charged is charged to the new
// backend, whether it fits or not.
type QuotaChanged struct {
	// Backend that decides from now on; nil when there is none.
	Backend quota.Backend
	// Missing says why there is none.
	Missing *quota.Refusal
}

// Observed: a backend that is a quota.Observer is to take in what was seen. Another
// backend is not reported.
type Observed struct{ Seen any }

// QueueChanged: an administrator has set a queue so.
type QueueChanged struct {
	// Queue is the name of the Queue.
	Queue string
	// Policy is that of all queues when it is empty.
	Policy queue.Policy
	// Rank among queues that compete for the same room, the greater first.
	Rank int32
	// MaxPriority caps the priority of the queue's units.
	MaxPriority Cap
	Stop        Stop
}

// Cap is a greatest priority, if Set.
type Cap struct {
	Set   bool
	Value int32
}

// Of is the priority, capped.
func (c Cap) Of(priority int32) int32 {
	if c.Set {
		return min(priority, c.Value)
	}
	return priority
}

// Stop says how a queue is stopped.
type Stop int

// How a queue is stopped.
const (
	// NotStopped: its units are released.
	NotStopped Stop = iota
	// Hold: nothing more is released.
	Hold
	// Drain: nothing more is released, and what holds quota is evicted.
	Drain
)

// Written: the write with this number succeeded.
type Written struct {
	Key string
	Seq uint64
	// Version of the unit that the write made.
	Version uint64
	// DequeuedAt is the time of the release, and Quota what it was charged to; for
	// Dequeue.
	DequeuedAt time.Time
	Quota      string
}

// Refused: the write with this number changed nothing, because the unit was not
// what it had been decided on.
type Refused struct {
	Key string
	Seq uint64
	// Now is the unit as it is; nil when it is gone.
	Now *Unit
}

// Plan is what is to be written, in this order.
type Plan []Write

// Kind of a write.
type Kind int8

const (
	// Dequeue: the unit has been given quota and its job is to be released.
	Dequeue Kind = iota + 1
	// Explain: the unit waits, for another cause than it shows.
	Explain
	// Requeue: the unit has given its quota back and waits again.
	Requeue
	// Evict: the job of a unit that holds quota is to be stopped.
	Evict
)

func (k Kind) String() string {
	return [...]string{"", "Dequeue", "Explain", "Requeue", "Evict"}[k]
}

// Write is one write to one unit.
type Write struct {
	// Seq is the number by which the outcome is reported.
	Seq  uint64
	Kind Kind
	Key  string
	UID  string
	// Version of the unit that this was decided on.
	Version uint64
	// Queue and Quota that the unit belongs to; empty when none.
	Queue, Quota string
	// Reason and Message to show; empty for Dequeue.
	Reason  wellknown.Reason
	Message string
	// Attempt is the number of the release, from 1, and Submitted the unit's; for
	// Dequeue.
	Attempt   int32
	Submitted int64
}
