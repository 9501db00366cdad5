package scheduler

import (
	"time"

	"kube-queue.dev/kube-queue/pkg/queue"
	"kube-queue.dev/kube-queue/pkg/quota"
)

// instant is a time in microseconds since the zero time.Time, a third of its size:
// there are several of them in each of a million units. 0 is none, as the zero time is.
type instant int64

func instantOf(t time.Time) instant { return instant(t.UnixMicro() - time.Time{}.UnixMicro()) }

func (i instant) time() time.Time { return time.UnixMicro(int64(i) + time.Time{}.UnixMicro()) }

// plus is the instant that much later.
func (i instant) plus(d time.Duration) instant { return i + instant(d.Microseconds()) }

// earliest of two instants that may be none.
func earliest(a, b instant) instant {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// unit is what is kept of a Unit, and what has been decided about it. A waiting one
// should not be large: most are that.
type unit struct {
	Facts
	// dequeuedAt and requeueAt are those of the Unit.
	dequeuedAt, requeueAt instant

	item queue.Item
	// line that the unit belongs to by its namespace; nil when it has none.
	queue *queueState
	// refusal says why there is no line.
	placeRefusal *quota.Refusal
	// charged is what the unit holds; nil when it holds nothing.
	charged *charge

	// These are the outbox's, the explainer's and the timers' parts of the unit.
	write unitWrite
	shown shown
	timer timer

	// countedIn is the line that counts the unit, as countedAs.
	countedIn *queueState
	countedAs Phase
	// assumed: charged, and the write that says so is not confirmed.
	assumed bool
	gone    bool
}

// charge is what a unit has been charged with, and where.
type charge struct {
	group  quota.Group
	owner  string
	demand quota.Demand
}

// chargedTo is the group that the unit is charged to; nil when it is to none.
func (u *unit) chargedTo() quota.Group {
	if u.charged == nil {
		return nil
	}
	return u.charged.group
}

// newUnit is a unit that is seen for the first time.
func newUnit(u *Unit) *unit {
	return &unit{Facts: u.Facts, dequeuedAt: instantOf(u.DequeuedAt), requeueAt: instantOf(u.RequeueAt), item: queue.Item{Key: u.Key}}
}

// Key is the unit's namespace/name.
func (u *unit) key() string { return u.item.Key }

func (u *unit) namespace() string { return namespaceOf(u.item.Key) }

// update makes the unit what it is now known to be, and drops what was decided and
// not sent if it no longer holds. While a release is under way the unit stays
// assumed, whatever a version from before the release says.
func (u *unit) update(seen *Unit) {
	now, requeueAt := seen.Facts, instantOf(seen.RequeueAt)
	if seen.Partial {
		now.Demand, now.QuotaName, now.Priority, now.Submitted, now.Owner = u.Demand, u.QuotaName, u.Priority, u.Submitted, u.Owner
	}
	sameDemand := now.Demand.Equal(u.Demand)
	if sameDemand {
		now.Demand = u.Demand // which is its shape's
	}
	if u.write.wanted == Dequeue && (now.Held != nil || requeueAt > u.requeueAt || now.QuotaName != u.QuotaName || !sameDemand) {
		u.unassume() // the decision is made again, though its write has not been sent
	}
	u.Facts, u.dequeuedAt, u.requeueAt = now, instantOf(seen.DequeuedAt), requeueAt
	if now.Phase != Waiting {
		u.unassume()
	}
}

func (u *unit) unassume() {
	u.assumed = false
	u.write.drop(Dequeue)
}

func (u *unit) countedPhase() Phase {
	if u.assumed {
		return Dequeued
	}
	return u.Phase
}
