// Package scheduler is the core: it decides which waiting units get quota.
//
// It is pure: events go in with Apply, and decisions come out of Next as a Plan. It has no client, no
// clock and no goroutine, and the same events at the same times result in the same plans. One
// goroutine owns it.
//
// # Terms
//
// A unit either waits or is charged. The demand of a charged unit counts as used in its group and in all ancestors. A
// unit is assumed if it is charged here but its admission is not confirmed yet. A unit is held if it waits but must not
// be tried because it is inactive or was suspended by hand.
//
// # Writes
//
// A plan requests writes, and their outcomes come back as events. At most one write of a unit is in progress. If more
// writes are requested in the meantime, only the latest is sent when the outcome is known. A write carries the unit
// version that the decision is based on, so it fails if the unit has changed. The outcome of a failed write carries the
// current unit, and the decision is made again.
//
// # Invariants
//
//   - For every node and resource, used is the sum of the demands of the charged units. Check verifies
//     this.
//   - The metered usage of a namespace in a quota is the exact integral of its charges over time. Check compares what
//     is metered now with what is charged.
//   - A unit is charged before its admission is written. It stays charged until the write is known to have failed, the
//     unit has ended or was deleted, or the unit has stopped and is queued again. So the units in the API never hold
//     more than the quota.
//   - An event that is older than the known state of its unit changes nothing.
//   - A waiting unit is in the queue of its group, or a refusal explains why it is not queued.
//   - A message can name quotas, but not other namespaces or their units, because its readers might not have access to
//     them.
package scheduler
