package scheduler

import (
	"cmp"
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// instant is a time in microseconds since the zero time.Time. It is a third of the size of a time.Time, which matters
// because each of a million units has several. 0 means none, like the zero time.
type instant int64

func instantOf(t time.Time) instant { return instant(t.UnixMicro() - time.Time{}.UnixMicro()) }

func (i instant) time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(i) + time.Time{}.UnixMicro())
}

// plus returns the instant after the duration.
func (i instant) plus(d time.Duration) instant { return i + instant(d.Microseconds()) }

// earliest returns the earliest of the instants that are not 0.
func earliest(instants ...instant) (first instant) {
	for _, i := range instants {
		if first == 0 || i != 0 && i < first {
			first = i
		}
	}
	return first
}

// unit stores a Unit and what has been decided about it. It should be small while it waits, because most units do.
type unit struct {
	Facts
	// dequeuedAt and requeueAt are from the Unit.
	dequeuedAt, requeueAt instant

	item queue.Item
	// queue is the queue of the unit; nil if it has none.
	queue *queueState
	// placeRefusal explains why the unit has no queue, or why it is not queued regardless of its request.
	placeRefusal *quota.Refusal
	// charged is the charge of the unit; nil if it holds no quota and no pods of its job are left.
	charged *charge
	// holder is the job of the unit if the unit was ever admitted; nil otherwise.
	holder *holder

	// claim is the unit's attempt to get room, and leaving its eviction; each is nil if there is none.
	claim   *claim
	leaving *leaving

	// These parts of the unit belong to the outbox, the explainer and the timers.
	write unitWrite
	shown shown
	timer timer

	// countedIn is the queue that counts the unit, with phase countedAs.
	countedIn *queueState
	// memberAt is 1 plus the index of the unit among the members of countedIn, or among the units that hold quota without
	// a queue; 0 if it is in neither.
	memberAt  int32
	countedAs Phase
	// assumed is whether the unit is charged and the write of its admission, or of its reservation, is not
	// confirmed.
	assumed bool
	// unadmitted is whether the unit holds quota only because another process wrote its phase.
	unadmitted bool
	gone       bool
}

// newUnit returns a unit that was not known before.
func newUnit(u *Unit) *unit {
	added := &unit{Facts: u.own(), dequeuedAt: instantOf(u.DequeuedAt), requeueAt: instantOf(u.RequeueAt), item: queue.Item{Key: u.Key}}
	added.resize()
	added.seeEviction(u)
	return added
}

// key returns the namespace/name of the unit.
func (u *unit) key() string { return u.item.Key }

func (u *unit) namespace() string { return namespaceOf(u.item.Key) }

// update applies a newer version of the unit. It drops an unsent decision if it is outdated. While an admission is
// being written, the unit stays assumed, even if this version is from before the write.
func (u *unit) update(seen *Unit) {
	now, requeueAt := seen.own(), instantOf(seen.RequeueAt)
	if seen.Partial {
		now.Demand, now.Elastic = u.Elastic.Whole(u.Demand), u.Elastic
		now.QuotaName, now.Priority, now.Submitted, now.Owner, now.Label, now.Kind = u.QuotaName, u.Priority, u.Submitted, u.Owner, u.Label, u.Kind
		now = now.own()
	}
	if now.Phase == Ended {
		now.Owner, now.Label = cmp.Or(now.Owner, u.Owner), cmp.Or(now.Label, u.Label)
	}
	sameDemand := u.keepGrant(&now)
	if sameDemand && now.Elastic == nil {
		now.Demand = u.Demand // shared with its shape
	}
	if u.assumed && u.write.wanted.admits() && (now.Held != nil || requeueAt > u.requeueAt || u.Restored && !now.Restored || now.QuotaName != u.QuotaName || !sameDemand) {
		u.unassume() // the decision is repeated; its write has not been sent
	}
	if u.runs() && now.Phase.holdsQuota() && now.Attempts == u.Attempts { // otherwise, its owner could hide a wrong estimate
		now.Expected = u.Expected
		if limit := ExpectedOf(u.MaxSeconds); u.isRaisedBy(seen) && (now.Expected == 0 || limit < now.Expected) {
			now.Expected = limit
		}
	}
	u.Facts, u.dequeuedAt, u.requeueAt = now, instantOf(seen.DequeuedAt), requeueAt
	u.seeEviction(seen)
	if now.Phase != Waiting {
		u.unassume()
	}
	u.resize()
}

func (u *unit) unassume() {
	u.assumed = false
	u.write.drop(Dequeue)
	u.write.drop(Reserve)
}

func (u *unit) countedPhase() Phase {
	switch {
	case !u.assumed:
		return u.Phase
	case u.write.pending(Reserve):
		return Reserved
	default:
		return Dequeued
	}
}
