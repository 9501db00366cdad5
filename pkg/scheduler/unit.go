package scheduler

import (
	"time"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
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

// unit is what is kept of a Unit, and what has been decided about it. A waiting one
// should not be large: most are that.
type unit struct {
	Facts
	// dequeuedAt and requeueAt are those of the Unit.
	dequeuedAt, requeueAt instant

	item queue.Item
	// line that the unit belongs to by its namespace; nil when it has none.
	line *line
	// homeless says why there is no line.
	homeless *quota.Refusal
	// charged is what the unit holds; nil when it holds nothing.
	charged *charge

	write unitWrite
	// since when the unit waits; 0 when it does not.
	since instant
	// told is what the unit shows its users, since toldAt; nil for nothing. tellAt is
	// when to look whether it is still true, and lookAt when to look at the unit at all.
	told                   *quota.Cause
	toldAt, tellAt, lookAt instant
	timer                  int
	// countedIn is the line that counts the unit, as countedAs.
	countedIn *line

	countedAs Phase
	// assumed: charged, and the write that says so is not confirmed.
	assumed bool
	// restored: told comes from the unit itself, which shows the reason alone.
	restored bool
	gone     bool
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

// newUnit is a unit that is seen for the first time. It shows its users what it says.
func (s *Scheduler) newUnit(u *Unit) *unit {
	seen := &unit{Facts: u.Facts, dequeuedAt: instantOf(u.DequeuedAt), requeueAt: instantOf(u.RequeueAt), item: queue.Item{Key: u.Key}}
	s.restoreTold(seen, u.Reason)
	return seen
}

// Key is the unit's namespace/name.
func (u *unit) key() string { return u.item.Key }

func (u *unit) namespace() string { return namespaceOf(u.item.Key) }

// become makes the unit what it is now known to be, and drops what was decided and
// not sent if it no longer holds. While a release is under way the unit stays
// assumed, whatever a version from before the release says.
func (u *unit) become(seen *Unit) {
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

// tell notes what the unit shows its users from now on.
func (s *Scheduler) tell(u *unit, cause quota.Cause, now time.Time) {
	u.told, u.toldAt, u.restored = s.causes.one(cause), instantOf(now), false
}

// restoreTold notes what the unit says itself that it shows.
func (s *Scheduler) restoreTold(u *unit, reason wellknown.Reason) {
	u.told, u.toldAt, u.restored = s.causes.one(quota.Cause{Reason: reason}), 0, true
}

func (u *unit) tellNothing() { u.told, u.toldAt, u.restored = nil, 0, false }

// toldCause is what the unit shows its users; the zero Cause for nothing.
func (u *unit) toldCause() quota.Cause {
	if u.told == nil {
		return quota.Cause{}
	}
	return *u.told
}

// causes keeps one of each Cause: many units share few.
type causes map[quota.Cause]*quota.Cause

func (c causes) one(cause quota.Cause) *quota.Cause {
	if cause == (quota.Cause{}) {
		return nil
	}
	if c[cause] == nil {
		c[cause] = &cause
	}
	return c[cause]
}
