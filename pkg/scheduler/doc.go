// Package scheduler is the core: it decides which waiting units get quota.
//
// It is pure: events go in with Apply, and decisions come out of Next as a Plan. It has no client, no
// clock and no goroutine, and the same events at the same times result in the same plans. One
// goroutine owns it.
//
// # Terms
//
// A unit either waits or is charged, so that its demand counts as used in its group and in all
// ancestors. A unit is assumed if it is charged here and the write of its admission is not confirmed
// yet. A unit is held if it waits but must not be tried because it is inactive or was suspended by
// hand.
//
// # Writes
//
// A plan requests writes, and their outcomes come back as events. At most one write of a unit is in
// progress. Of the writes that are requested in the meantime, only the latest is sent when the outcome
// is known. A write carries the version of the unit on which the decision is based, so it fails if the
// unit has changed. The outcome of a failed write carries the current unit, and the decision is made
// again.
//
// # Invariants
//
//   - For every node and resource, used is the sum of the demands of the charged units. Check verifies
//     this.
//   - What a namespace has used of a quota over time is the exact integral of what was charged to it. Check compares
//     what is metered now with what is charged.
//   - A unit is charged before its admission is written. It stays charged until the write is known to
//     have failed, the unit has ended or was deleted, or the unit has stopped and is queued again. The
//     units in the API therefore never hold more than the quota.
//   - An event that is older than what is already known of a unit changes nothing.
//   - A waiting unit is in the queue of its group, or a refusal explains why it is in no queue.
//   - A message names quotas, but no other namespace and no unit of another namespace: its readers may
//     be allowed to read nothing else.
package scheduler
