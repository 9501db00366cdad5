package scheduler

import (
	"strings"
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/pkg/backoff"
	"kube-queue.dev/kube-queue/pkg/forecast"
	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// Phase is the phase of a unit with regard to quota.
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

// Unit is what the core receives of a QueueUnit.
type Unit struct {
	// Key is namespace/name.
	Key string
	Facts
	// Partial is whether the request and the order of the unit could not be read completely. Known values then stay in
	// force.
	Partial bool

	// DequeuedAt is when the unit was last admitted; zero if it never was.
	DequeuedAt time.Time
	// RequeueAt, if set, is when the unit is or was queued again after freeing its quota.
	RequeueAt time.Time
	// Reason is the reason that the unit shows now.
	Reason wellknown.Reason
	// Eviction describes the eviction of a unit that is evicted. If the unit was requeued since, or a user has suspended
	// its job, At is when that happened.
	Eviction Eviction
}

// JobKind is the number of a kind of job. The code that runs the core knows its name. 0 is unknown.
type JobKind uint16

// Eviction is when a unit was evicted, and for which claimant.
type Eviction struct {
	// At is when the eviction was written.
	At time.Time
	// For is the UID of the unit that gets the room; empty if it is not evicted for another one.
	For string
}

// Facts are the part of a Unit that the core stores unchanged. They contain no time.Time, because it is large and the
// core can hold a million units. The core stores times in a shorter form.
type Facts struct {
	UID string
	// Owner is the UID of the job whose pods use the quota of the unit; empty if unknown. Like Demand, it can be
	// missing from a unit that has ended or was never admitted.
	Owner string
	// Label identifies the job for pods that have lost their controller; empty if no label does.
	Label string
	// QuotaName selects one of the groups of the namespace. If empty, the first is used.
	QuotaName string
	// Quota is the path in the status of the unit: the group whose quota it holds, held last, or waits for.
	Quota string
	// Version increases with every write to the unit.
	Version uint64
	// Submitted orders units of the same priority, in microseconds since 1970.
	Submitted int64
	Demand    quota.Demand
	// Elastic, if set, describes how the unit can be admitted with fewer pods. In a Unit, Demand then includes all
	// pods. In the core, Demand is what counts now.
	Elastic *Elastic
	// Held, if set, is why the unit must not be tried.
	Held *quota.Refusal
	// Backoff explains why a unit that has freed its quota is not queued again yet; nil if unknown.
	Backoff *quota.Refusal
	// Checking is what admission checks have decided; nil if none was ever asked.
	Checking *Checking
	// MaxSeconds is how long the unit can run after its release; 0 means no limit.
	MaxSeconds int32
	Priority   int32
	Attempts   int32
	// Requeues is how often the unit has recently freed its quota because of its owner.
	Requeues int32
	// Kind is the kind of the job.
	Kind JobKind
	// Expected is how long the owner expects the unit to run. It is not enforced.
	Expected Expected
	Phase    Phase

	// Unstoppable is whether the job continues when it is suspended. Such a unit is not evicted for others.
	Unstoppable bool
	// Inactive is whether the unit must not run. It is evicted if it holds quota.
	Inactive bool
	// HeldReported is whether another writer reports why the unit is held.
	HeldReported bool
	// Evicted is whether the eviction of a unit that holds quota has been written. The unit holds
	// the quota until the job has stopped.
	Evicted bool
	// Over is whether the job has ended or is gone, and the unit holds quota only until the job's remaining pods and
	// objects are gone. Such a unit is not evicted, and its Demand does not include pods.
	Over bool
	// Stopped is whether the job of a unit that holds quota has stopped. The unit is then requeued,
	// which frees its quota.
	Stopped bool
	// AwaitsPods is whether the unit's queue waits for its pods to become ready.
	AwaitsPods bool
	// OverQuota is whether the unit shows that its pods exceed what was admitted while a limit of its quota is
	// exceeded.
	OverQuota bool
	// Unscheduled is whether the unit shows that its pods are missing or cannot be scheduled.
	Unscheduled bool
	// Restored is whether a waiting unit replaces one that was lost. Its job runs, so it is charged immediately, even
	// if it does not fit.
	Restored bool
	// Growth is whether the unit is for pods that a job has added since its admission. Another unit with the same Owner is
	// for the original pods. Growth is evicted first.
	Growth bool
	// Renewal limits how long a hand-made unit holds quota; nil means no limit.
	Renewal *Renewal
}

// Namespace returns the namespace of the unit.
func (u *Unit) Namespace() string { return namespaceOf(u.Key) }

func namespaceOf(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}

// Event is something that happened.
type Event interface{ apply(*Scheduler, time.Time) }

// UnitChanged means that a unit exists or has changed.
type UnitChanged struct{ Unit Unit }

// UnitGone means that a unit was deleted.
type UnitGone struct{ Key, UID string }

// Listed means that the core has seen all units that exist at the start. An earlier process admitted those that hold
// quota. From now on, only the core admits units.
type Listed struct{}

// QuotaChanged means that the limits have changed. All units that hold quota are charged to the new backend, even if
// they do not fit.
type QuotaChanged struct {
	// Backend is the new backend; nil if there is none.
	Backend quota.Backend
	// Missing explains why there is none.
	Missing *quota.Refusal
}

// Observed is an observation for a backend that is a quota.Observer. Other backends do not receive it.
type Observed struct{ Seen any }

// KindsChanged means that job-extensions now queues different kinds of jobs.
type KindsChanged struct {
	// Off explains, by kind that it does not queue, why units of that kind are not admitted.
	Off map[JobKind]*quota.Refusal
}

// QueueChanged means that an administrator has changed the settings of a queue.
type QueueChanged struct {
	// Queue is the name of the Queue.
	Queue string
	// Policy is the policy of the queue. If nil, the default policy applies.
	Policy *queue.Policy
	// Rank orders queues that compete for the same room. The highest goes first.
	Rank int32
	// MaxPriority caps the priority of the units of the queue.
	MaxPriority Cap
	Stop        Stop
	Preemption  Preemption
	PodsReady   PodsReady
	// ReserveAfter is how long a unit waits before room is reserved for it; 0 means that none ever is.
	ReserveAfter time.Duration
	// Learned, if set, is what was learned from past jobs of the queue. The core then learns nothing itself.
	Learned *forecast.Learned
	// Checks are the admission checks of the queue. Skipped is whether it has others, for which units do not wait. Both
	// keep a unit from passing a reservation by its limit.
	Checks  Checks
	Skipped bool
	// Gates is whether pods that a job adds after its admission wait for quota.
	Gates bool
}

// Preemption is how units of a queue are evicted for others.
type Preemption struct {
	// WithinQueue is whether units of the queue are evicted for units with higher priority in the same queue.
	WithinQueue bool
	// MinRunTime is how long a unit of the queue is protected from eviction for others after its admission.
	MinRunTime Period
	// MaxPerMinute is how many units of the queue can be evicted for others per minute; 0 means no limit.
	MaxPerMinute int32
}

// Period is a duration, if Set. Otherwise, the one in Options applies.
type Period struct {
	Set   bool
	Value time.Duration
}

// Cap is the maximum priority, if Set.
type Cap struct {
	Set   bool
	Value int32
}

// Of returns the capped priority.
func (c Cap) Of(priority int32) int32 {
	if c.Set {
		return min(priority, c.Value)
	}
	return priority
}

// Stop is whether and how a queue is stopped.
type Stop int

// The ways in which a queue is stopped.
const (
	// NotStopped means that units are admitted.
	NotStopped Stop = iota
	// Hold means that no unit is admitted.
	Hold
	// Drain means that no unit is admitted and that units that hold quota are evicted.
	Drain
)

// Written means that the write succeeded.
type Written struct {
	Write *Write
	// Version is the version of the unit after the write.
	Version uint64
	// At is the time of the write. It is only used for Dequeue and Reserve.
	At time.Time
}

// Refused means that the write changed nothing because the unit had changed since the decision.
type Refused struct {
	Write *Write
	// Now is the current unit; nil if it was deleted.
	Now *Unit
}

// Denied means that the API server rejected a write to the unit, for example because of a policy. The unit is not
// written to before Until, unless it changes first. A waiting unit is not tried before Until, and shows Why.
type Denied struct {
	Write *Write
	Until time.Time
	Why   *quota.Refusal
}

// Plan is a list of writes, in the order in which they must be sent.
type Plan []Write

// Kind is the kind of a write.
type Kind int8

const (
	// Dequeue admits the unit, so that its job is released.
	Dequeue Kind = iota + 1
	// Explain reports a new reason why the unit waits.
	Explain
	// Requeue frees the quota of the unit, which waits again.
	Requeue
	// Evict requests that the job of a unit that holds quota be stopped.
	Evict
	// MarkOverQuota reports that the pods of the unit exceed what was admitted while a limit of its
	// quota is exceeded. ClearOverQuota reports that this is over.
	MarkOverQuota
	ClearOverQuota
	// Reserve charges the unit and starts its admission checks. Dequeue follows when they are ready.
	Reserve
	// MarkUnscheduled reports that pods of the unit are missing or cannot be scheduled. ClearUnscheduled reports that this
	// is over.
	MarkUnscheduled
	ClearUnscheduled
	// Expire ends a hand-made unit that was not renewed.
	Expire
	// ShowPlace reports that the charge of a unit has moved to another quota, because its quota was renamed or its
	// namespace was moved.
	ShowPlace
)

func (k Kind) String() string {
	return [...]string{"", "Dequeue", "Explain", "Requeue", "Evict", "MarkOverQuota", "ClearOverQuota", "Reserve", "MarkUnscheduled", "ClearUnscheduled", "Expire", "ShowPlace"}[k]
}

// writesPlace reports whether the write sets queue, quota, reason and message of the unit. Other kinds set a
// condition.
func (k Kind) writesPlace() bool { return k.admits() || k == Explain || k == Requeue }

// admits reports whether the unit is charged as soon as the write is decided.
func (k Kind) admits() bool { return k == Dequeue || k == Reserve }

// Write is one write to one unit.
type Write struct {
	// Seq is the number of the write.
	Seq  uint64
	Kind Kind
	Key  string
	UID  string
	// Version is the unit version that the decision is based on.
	Version uint64
	// Queue and Quota are those of the unit; empty if none.
	Queue, Quota string
	// Reason and Message are what the unit shows; empty for Dequeue. Figures is whether the message has amounts that
	// change all the time, so it must say when they were read.
	Reason  wellknown.Reason
	Message string
	Figures bool
	// Resource is a resource that the unit can never get enough of; empty if there is none. Asked is the amount that it
	// requests, in base units. Both are only for Explain.
	Resource string
	Asked    int64
	// Requeue is how often the unit has freed its quota, and when it is queued again. It is only for Requeue.
	Requeue backoff.State
	// EvictedFor is the UID of the claimant, only for Evict; empty if there is none.
	EvictedFor string
	// Attempt is the number of the admission, from 1. Submitted is from the unit. AwaitsPods is whether the
	// queue waits for the pods of the job to become ready. All are only for Dequeue.
	Attempt    int32
	Submitted  int64
	AwaitsPods bool
	// Gates is whether pods that the job adds wait for quota, and Growth is from the unit. Both are only for Dequeue.
	Gates, Growth bool
	// Grant is the number of pods that the unit is admitted with, if not all. It is only for Dequeue and Reserve.
	Grant Grant
	// Checks are the checks to run, in order, and Reservation is the number of the reservation, from 1.
	// Both are only for Reserve.
	Checks      Checks
	Reservation int32
	// Rejected is whether an admission check has rejected the unit, and Generation is that of its spec. Both are only for
	// Requeue.
	Rejected   bool
	Generation int64
}
