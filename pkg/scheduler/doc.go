// Package scheduler is the core: it decides which waiting units get quota.
//
// It is pure. Events go in by Apply, decisions come out of Next as a Plan;
// there is no client, no clock and no goroutine in it, and the same events at
// the same times give the same plans. One goroutine owns it.
//
// # Words
//
// A unit waits, or it is charged: its demand counts as used in its group and in
// every node above. A unit is assumed when it is charged here and the write that
// says so to everybody else has not been confirmed. A unit is held back when it
// waits but must not be tried (deactivated, suspended by hand).
//
// # Writes
//
// A plan asks for writes; their outcomes come back as events. At most one write
// is under way for a unit; what is wanted meanwhile is sent when its outcome is
// in, and only the latest wish is. A write carries the version of the unit that
// was decided on, so it fails when the unit has changed since; the outcome of
// such a write brings the unit as it is now, and the decision is made again.
//
// # Invariants
//
//   - For every node and resource, used is the sum of what charged units demand.
//     Check proves it.
//   - A unit is charged before its release is written, and stays charged until
//     the write is known to have failed, or the unit to have ended, gone, or,
//     stopped, to be back in line: what the units say never adds up to more than
//     there is.
//   - News of a unit that is older than what is already known of it changes
//     nothing.
//   - A waiting unit is in the queue of its group, or there is a refusal that
//     says why it is in none.
package scheduler
